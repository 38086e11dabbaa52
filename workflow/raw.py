"""What lies in data/raw: corpora and treebanks, each in a folder named by what makes it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headcount.base.fingerprint import code, digest
from headcount.base.settings.corpora import WORDS, Corpus
from headcount.base.settings.names import parse_pair
from headcount.base.settings.sources import File

CORPORA = "config/corpora.yaml"


@dataclass(frozen=True)
class Source:
    """A corpus or a treebank, as one job fetches or generates it."""

    corpus: str
    script: str  # download or synthetic
    entry: str  # what shapes its files, as JSON
    own: list[str]  # files of one's own that it is a copy of
    pinned: Mapping[str, str] = field(default_factory=dict)  # their SHA-256 by the settings

    @property
    def recipe(self) -> str:
        """Name of its folder.

        Another entry in corpora.yaml, or other code, is another folder, so a file there is never
        out of date and experiments may share it.
        """
        return digest([code(f"scripts/{self.script}.py"), self.entry])

    @property
    def manifest(self) -> str:
        """The file that stands for it."""
        return f"data/raw/{self.corpus}/{self.recipe}/manifest.json"


class Raw:
    """Corpora by their names, and the treebanks of one experiment, `<corpus>.<treebank>`."""

    def __init__(self, named: list[str], corpora: Mapping[str, Corpus]):
        """`named`: those of the experiment's settings; empty stands for a corpus's own test set."""
        self._named = named
        self._corpora = corpora

    def of(self, name: str) -> Source:
        """The corpus of this name, or of this pair: all but its words and trees.

        One that is a part of another is in that one's folder.
        """
        name = name.partition(".")[0]
        corpus = self._corpora[name]
        entry = json.dumps(corpus.model_dump(exclude=set(WORDS), exclude_none=True))
        script = "synthetic" if corpus.generator else "download"
        own = [file for file in corpus.files() if file.path]
        paths = list(dict.fromkeys(file.path for file in own))
        return Source(corpus.of or name, script, entry, paths, _pinned(own))

    def draw(self, w: Mapping[str, str]) -> list[str]:
        """How many pairs of a split are drawn, and by which seed, as a flag if any are."""
        rule = (self._corpora[parse_pair(w["pair"]).corpus].draw or {}).get(w["split"])
        return ["--draw", str(rule.pairs), str(rule.seed)] if rule else []

    def treebanks(self, pair: str) -> list[str]:
        """Treebanks in the language of a pair's source, in the order of the settings."""
        corpus, src, _ = parse_pair(pair)
        named = self._named or ([f"{corpus}.test"] if self._corpora[corpus].generator else [])
        parts = [name.partition(".") for name in named]
        return ["".join(p) for p in parts if self._corpora[p[0]].tree_languages[p[2]] == src]

    def of_tree(self, treebank: str) -> Source:
        """A treebank as a corpus with one split; or the generated corpus that it comes with."""
        corpus, _, name = treebank.partition(".")
        tree = (self._corpora[corpus].trees or {}).get(name)
        if tree is None:
            return self.of(corpus)
        file = tree.model_dump(exclude={"language", "base_url"}, exclude_none=True)
        entry = {"base_url": tree.base_url, "splits": {name: {tree.language: file}}}
        own = [tree] if tree.path else []
        paths = [file.path for file in own]
        return Source(corpus, "download", json.dumps(entry), paths, _pinned(own))

    def at(self, w: Mapping[str, str]) -> Source:
        """What belongs into the folder of `w` (corpus, recipe)."""
        trees = (self.of_tree(f"{w['corpus']}.{t}") for t in self._corpora[w["corpus"]].trees or {})
        found = (source for source in trees if source.recipe == w["recipe"])
        return next(found, self.of(w["corpus"]))


def _pinned(files: Iterable[File]) -> dict[str, str]:
    """Return the SHA-256 that the settings give of files of one's own, by path."""
    return {file.path: file.sha256 for file in files if file.sha256}
