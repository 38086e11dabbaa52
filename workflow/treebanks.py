"""What the rules ask of treebanks: which a pair has, where each comes from, what fetches it."""

import json
from collections.abc import Mapping

from headcount.base.fingerprint import code, digest
from headcount.base.settings.corpora import Corpus
from headcount.base.settings.names import parse_pair


class Treebanks:
    """The treebanks of one experiment, by their names, `<corpus>.<treebank>`."""

    def __init__(self, named: list[str], corpora: Mapping[str, Corpus]):
        """`named`: those of the experiment's settings; empty stands for a corpus's own test set."""
        self._named = named
        self._corpora = corpora

    def of_pair(self, pair: str) -> list[str]:
        """Treebanks in the language of a pair's source, in the order of the settings."""
        corpus, src, _ = parse_pair(pair)
        generated = [f"{corpus}.test"] if self._corpora[corpus].generator else []
        return [name for name in self._named or generated if self._language(name) == src]

    def own_name(self, w: Mapping[str, str]) -> str:
        """Name of the treebank of `w` within its corpus."""
        return _split(w["treebank"])[1]

    def is_generated(self, treebank: str) -> bool:
        """Whether a treebank is made together with its corpus."""
        corpus, name = _split(treebank)
        return name not in (self._corpora[corpus].trees or {})

    def fetched(self, treebank: str) -> str:
        """Manifest of a treebank that is fetched, in a folder named by what makes it."""
        corpus, _ = _split(treebank)
        return f"data/raw/{corpus}/{self._recipe(treebank)}/manifest.json"

    def entry(self, w: Mapping[str, str]) -> str:
        """What to fetch, as JSON, if the folder of `w` (corpus, recipe) is that of a treebank."""
        found = self._of_folder(w)
        return self._entry(found) if found else ""

    def own_files(self, w: Mapping[str, str]) -> list[str]:
        """The file of a treebank of one's own, if the folder of `w` is that of one."""
        found = self._of_folder(w)
        return self.own(found) if found else []

    def own(self, treebank: str) -> list[str]:
        """The file of a treebank, if it is one's own."""
        corpus, name = _split(treebank)
        path = None if self.is_generated(treebank) else self._corpora[corpus].trees[name].path
        return [path] if path else []

    def _of_folder(self, w: Mapping[str, str]) -> str:
        corpus = w["corpus"]
        names = (f"{corpus}.{name}" for name in self._corpora[corpus].trees or {})
        return next((name for name in names if self._recipe(name) == w["recipe"]), "")

    def _recipe(self, treebank: str) -> str:
        return digest([code("scripts/download.py"), self._entry(treebank)])

    def _entry(self, treebank: str) -> str:
        """A treebank as a corpus with one split, which is what is fetched."""
        corpus, name = _split(treebank)
        tree = self._corpora[corpus].trees[name]
        file = tree.model_dump(exclude={"language", "base_url"}, exclude_none=True)
        return json.dumps({"base_url": tree.base_url, "splits": {name: {tree.language: file}}})

    def _language(self, treebank: str) -> str:
        corpus, name = _split(treebank)
        return self._corpora[corpus].tree_languages[name]


def _split(treebank: str) -> tuple[str, str]:
    corpus, _, name = treebank.partition(".")
    return corpus, name
