"""Dependency trees of one's own text, predicted by stanza, an optional extra.

Words are those of the project's tokeniser, so that they fit the models; trees are written in
CoNLL-U, to be named as a treebank in corpora.yaml.
"""

from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault, UserError, lacks_memory, optional_package
from headcount.base.files import read_json, sha256, write_json, write_text
from headcount.base.settings.data import SpellingSettings
from headcount.data.spelling import spelling
from headcount.data.text import read_clean
from headcount.data.words import Tokeniser

RESOURCES = "1.15.0"
"""Release of stanza's models; their checksums stand in its list, which stanza verifies."""
_STEPS = "tokenize,pos,lemma,depparse"
_AT_ONCE = 100  # sentences
_DAMAGED = (OSError, ValueError, RuntimeError, EOFError)
"""What reading models raises of which there are none, or a part."""


def parse_text(
    source: Path, tokeniser: Tokeniser, models: Path, out: Path, origin: dict[str, Any]
) -> None:
    """Write the predicted tree of every line of a text that has a word, as CoNLL-U.

    Sentences are called `line-<number>`. Models of the tokeniser's language are fetched into
    `models` if they are not there. Beside `out` goes a JSON: sentences, checksums of the
    models, `origin`. Raises EnvironmentFault without stanza, or if its models cannot be had;
    UserError for a text without a word.
    """
    parser = load_parser(tokeniser.language, models)
    lines = enumerate(read_clean(source), start=1)
    spell = spelling(SpellingSettings())
    texts = [(number, spell(line)) for number, line in lines if line]
    if not texts:
        raise UserError(f"{source}: expected sentences, found no line with a word")
    blocks = []
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        document = parser([tokeniser.split(line) for _, line in part])
        for (number, line), parsed in zip(part, document.sentences, strict=True):
            rows = [f"# sent_id = line-{number}", f"# text = {line}"]
            for word in parsed.words:
                cells = (word.id, word.text, "_", word.upos or "_", "_", "_", word.head)
                rows.append("\t".join(map(str, (*cells, word.deprel, "_", "_"))))
            blocks.append("\n".join(rows) + "\n\n")
    write_text(out, "".join(blocks))
    folder = _folder(models, tokeniser.language)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    facts = {"sentences": len(blocks)}
    facts["models"] = {path.relative_to(models).as_posix(): sha256(path) for path in files}
    write_json(out.with_suffix(".json"), facts | {"provenance": origin})


def load_parser(language: str, models: Path) -> Any:
    """stanza's pipeline for words that are cut already. Raises EnvironmentFault without one."""
    remedy = "run: pip install -e '.[parse]', or name a treebank that exists under roles.trees"
    stanza = optional_package("stanza", "predicted trees", remedy)
    common = {"processors": _STEPS, "package": "default"}

    def load() -> Any:
        return stanza.Pipeline(
            language, str(models), tokenize_pretokenized=True, download_method=None, **common
        )

    try:
        try:
            return load()
        except _DAMAGED as fault:  # no files, or a part of a download
            if lacks_memory(fault):
                raise
            stanza.download(language, str(models), resources_version=RESOURCES, **common)
            return load()
    except _DAMAGED as fault:
        if lacks_memory(fault):
            raise
        raise EnvironmentFault(
            f"stanza has no models for {language!r} in {models}, or they cannot be fetched: "
            f"{fault}; check the language and the network"
        ) from fault


def _folder(models: Path, language: str) -> Path:
    """Where stanza keeps a language, for some under a name of its own, as for Chinese `zh-hans`."""
    listed = models / "resources.json"
    names = read_json(listed) if listed.exists() else {}
    return models / names.get(language, {}).get("alias", language)
