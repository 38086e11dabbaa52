"""Raw data: corpora, treebanks and models in data/raw, in folders named by what makes them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headcount.base.fingerprint import code, digest
from headcount.base.settings.corpora import WORDS, Corpus
from headcount.base.settings.section import parse_pair
from headcount.base.settings.sources import File


@dataclass(frozen=True)
class Source:
    """A corpus, a treebank or a model, as one job fetches or generates it."""

    name: str
    script: str
    """The script that fetches or generates it."""

    entry: str
    """All that shapes its files, as JSON."""

    own: list[str]
    """Files of one's own that it is a copy of."""

    pinned: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of such files in the settings."""

    settings: str = "config/corpora.yaml"
    """The file of settings that names it."""

    @property
    def recipe(self) -> str:
        """Name of its folder.

        Another entry, or other code, is another folder. So a file there is never out of date, and
        experiments may share it.
        """
        return digest([code(f"scripts/{self.script}.py"), self.entry])

    @property
    def manifest(self) -> str:
        """The file that stands for it."""
        return f"data/raw/{self.name}/{self.recipe}/manifest.json"


class Raw:
    """Corpora by their names, and the treebanks of one experiment, `<corpus>.<treebank>`."""

    def __init__(self, trees: list[str], corpora: Mapping[str, Corpus]):
        """`trees`: the settings' treebanks. An empty list stands for a corpus's own test set."""
        self._trees = trees
        self._corpora = corpora

    def of(self, name: str) -> Source:
        """Return the corpus of this name or pair, without its words and trees.

        A part of another corpus is in that corpus's folder.
        """
        name = name.partition(".")[0]
        corpus = self._corpora[name]
        entry = json.dumps(corpus.model_dump(exclude=set(WORDS), exclude_none=True))
        script = "synthetic" if corpus.generator else "download"
        return Source(corpus.of or name, script, entry, *_own(corpus.files()))

    def draw(self, w: Mapping[str, str]) -> list[str]:
        """Return how many pairs of a split are drawn, and by which seed, as a flag if any are."""
        rule = self._corpora[parse_pair(w["pair"]).corpus].draw.get(w["split"])
        return ["--draw", str(rule.pairs), str(rule.seed)] if rule else []

    def treebanks(self, w: Mapping[str, str]) -> list[str]:
        """Return the treebanks in the language of a pair's source, in the settings' order."""
        corpus, src, _ = parse_pair(w["pair"])
        names = self._trees or ([f"{corpus}.test"] if self._corpora[corpus].generator else [])
        parts = [name.partition(".") for name in names]
        return ["".join(p) for p in parts if self._corpora[p[0]].tree_languages[p[2]] == src]

    def of_tree(self, treebank: str) -> Source:
        """Return a treebank as a corpus with one split, or the generated corpus with its trees."""
        corpus, _, name = treebank.partition(".")
        tree = self._corpora[corpus].trees.get(name)
        if tree is None:
            return self.of(corpus)
        file = tree.model_dump(exclude={"language", "base_url"}, exclude_none=True)
        entry = {"base_url": tree.base_url, "splits": {name: {tree.language: file}}}
        return Source(corpus, "download", json.dumps(entry), *_own([tree]))

    def at(self, w: Mapping[str, str]) -> Source:
        """Return the source whose folder has the wildcards `w` (corpus, recipe)."""
        trees = (self.of_tree(f"{w['corpus']}.{t}") for t in self._corpora[w["corpus"]].trees or {})
        fitting = (source for source in trees if source.recipe == w["recipe"])
        return next(fitting, self.of(w["corpus"]))


def own_folder(folder: str, patterns: Iterable[str], needed: Iterable[str]) -> list[str]:
    """Return the files of a model's own folder, or the files that it needs if there is none."""
    paths = [path for pattern in patterns for path in Path(folder).glob(pattern)]
    return [f"{folder}/{name}" for name in sorted({path.name for path in paths} or {*needed})]


def _own(files: Iterable[File]) -> tuple[list[str], dict[str, str]]:
    """Return the paths of files of one's own, and the SHA-256 that the settings give, by path."""
    own = [file for file in files if file.path]
    return list(dict.fromkeys(file.path for file in own)), {
        file.path: file.sha256 for file in own if file.sha256
    }
