"""Dependency trees of a person's own text, predicted by stanza, an optional extra."""

from pathlib import Path
from typing import Any

from headcount.base.errors import (
    EnvironmentFault,
    UserError,
    install,
    lacks_memory,
    optional_package,
)
from headcount.base.files import read_json, sha256, write_json, write_text
from headcount.base.settings.data import SpellingSettings
from headcount.data.text import read_clean
from headcount.data.trees import conllu_text
from headcount.data.words import Tokeniser, normaliser

RESOURCES = "1.15.0"
"""Release of stanza's models, whose checksums stanza verifies."""
_AT_ONCE = 100  # sentences
_DAMAGED = (OSError, ValueError, RuntimeError, EOFError)  # missing or incomplete models
_REMEDY = f"{install('parse')}, or name a treebank that exists under roles.trees"


def parse_text(
    source: Path, tokeniser: Tokeniser, models: Path, out: Path, origin: dict[str, Any]
) -> None:
    """Write the predicted tree of every line of a text that has a word, as CoNLL-U."""
    parser = load_parser(tokeniser.language, models)
    normalise = normaliser(SpellingSettings())
    texts = [(n, normalise(line)) for n, line in enumerate(read_clean(source), 1) if line]
    if not texts:
        raise UserError(f"{source}: expected sentences, found no line with a word")
    blocks = []
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        document = parser([tokeniser.split(line) for _, line in part])
        for (number, line), parsed in zip(part, document.sentences, strict=True):
            words = [(word.text, word.upos or "_", word.head, word.deprel) for word in parsed.words]
            blocks.append(conllu_text(f"line-{number}", line, words))
    write_text(out, "".join(blocks))
    listed = models / "resources.json"  # some languages have a folder of another name, as zh-hans
    aliases = read_json(listed) if listed.exists() else {}
    folder = models / aliases.get(tokeniser.language, {}).get("alias", tokeniser.language)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    checksums = {path.relative_to(models).as_posix(): sha256(path) for path in files}
    facts = {"sentences": len(blocks), "models": checksums, "provenance": origin}
    write_json(out.with_suffix(".json"), facts)


def load_parser(language: str, models: Path) -> Any:
    """Return stanza's pipeline for words. Raises EnvironmentFault without package or models."""
    stanza = optional_package("stanza", "predicted trees", _REMEDY)
    try:
        return stanza.Pipeline(
            language,
            str(models),
            processors="tokenize,pos,lemma,depparse",
            tokenize_pretokenized=True,
            download_method="reuse_resources",  # fetches what is missing or damaged
            resources_version=RESOURCES,
        )
    except _DAMAGED as fault:
        if lacks_memory(fault):
            raise
        lack = f"stanza has no models for {language!r} in {models}, nor can fetch them"
        raise EnvironmentFault(f"{lack}: {fault}") from fault
