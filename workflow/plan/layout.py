"""Paths of an experiment's files, and raw data in folders named by what makes them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from headcount.base.fingerprint import code, digest
from headcount.base.folders import DESCRIPTION, PRETRAINED_SOURCES, WEIGHTS
from headcount.base.settings.corpora import WORDS, Corpus
from headcount.base.settings.pretrained import Origin
from headcount.base.settings.section import parse_pair
from headcount.base.settings.sources import File

Wildcards = Mapping[str, str]  # some of phase, pair, run and seed


SHARED = "shared"
"""Folder of the text and the trainings of one model for several pairs, beside those of pairs."""


@dataclass(frozen=True)
class Layout:
    """Folders of one experiment, and its files in the order of tables and figures."""

    experiment: str
    pairs: Sequence[str]
    seeds: Sequence[int]
    more_seeds: Mapping[str, Sequence[int]] = field(default_factory=dict)  # of some trainings

    @property
    def results(self) -> str:
        """The folder of all results, with a folder for every phase."""
        return f"results/{self.experiment}"

    def run(self, phase: str, pair: str = "{pair}", run: str = "{run}", seed="{seed}") -> str:
        """Return the folder of a run in a phase. Parts that are not given stay wildcards."""
        return f"{self.results}/{phase}/{pair}/{run}/seed{seed}"

    def beside(self, phase: str, w: Wildcards, run: str, *names: str) -> list[str]:
        """Return files of another run with the pair and seed of `w`."""
        return [f"{self.run(phase, w['pair'], run, w['seed'])}/{name}" for name in names]

    def folders(self, phase: str, runs: Iterable[str]) -> list[tuple[str, str]]:
        """Return pair and folder of a phase's files of every run, by pair, run and seed."""
        owners = product(self.pairs, runs)
        return [
            (pair, self.run(phase, pair, run, seed))
            for pair, run in owners
            for seed in self.seeds_of(phase, run)
        ]

    def seeds_of(self, phase: str, run: str) -> Sequence[int]:
        """Return the seeds of a run in a phase."""
        return [*self.seeds, *(self.more_seeds.get(run, ()) if phase == "train" else ())]

    def text(self, pair: str = "{pair}") -> str:
        """Return the folder of a pair's cleaned text."""
        return f"data/text/{self.experiment}/{pair}"

    def bpe(self, pair: str = "{pair}") -> str:
        """Return the folder of a pair's text as subwords."""
        return f"data/bpe/{self.experiment}/{pair}"


def model_in(run: str) -> dict[str, str]:
    """Return description and weights of the model in a run's folder, as named inputs or outputs."""
    return {"model": f"{run}/model/{DESCRIPTION}", "weights": f"{run}/model/{WEIGHTS}"}


def result(path: str) -> dict[str, str]:
    """Return a table and its facts, as named outputs."""
    return {"out": f"{path}.csv", "about": f"{path}.json"}


def alternatives(names: Iterable[str | int]) -> str:
    """Return a wildcard pattern that matches these names and nothing else."""
    return "|".join(re.escape(str(name)) for name in sorted(names)) or "(?!)"


@dataclass(frozen=True)
class Source:
    """A corpus, a treebank or a model, as one job fetches or generates it."""

    name: str
    entry: str  # all that shapes its files, as JSON
    own: list[str]  # files of one's own that it is a copy of
    pinned: Mapping[str, str]  # their SHA-256 in the settings
    script: str = "download"  # or the one that generates it
    settings: str = "config/corpora.yaml"  # which names it

    @classmethod
    def of_model(cls, name: str, model: Origin, settings: str) -> "Source":
        """Return a model of the Hugging Face library."""
        entry = model.model_dump_json(include={*Origin.model_fields})
        names = sorted(model.files)
        if model.path and not names:
            paths = [p for kind in PRETRAINED_SOURCES for p in Path(model.path).glob(kind)]
            names = sorted(p.name for p in paths) or ["config.json", "model.safetensors"]
        own = [f"{model.path}/{file}" for file in names if model.path]
        pinned = {path: model.files[Path(path).name] for path in own if model.files}
        return cls(name, entry, own, {k: v for k, v in pinned.items() if v}, settings=settings)

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
        return Source(corpus.of or name, entry, *_own(corpus.files()), script)

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
        return Source(corpus, json.dumps(entry), *_own([tree]))

    def at(self, w: Mapping[str, str]) -> Source:
        """Return the source whose folder has the wildcards `w` (corpus, recipe)."""
        trees = (self.of_tree(f"{w['corpus']}.{t}") for t in self._corpora[w["corpus"]].trees or {})
        fitting = (source for source in trees if source.recipe == w["recipe"])
        return next(fitting, self.of(w["corpus"]))


def _own(files: Iterable[File]) -> tuple[list[str], dict[str, str]]:
    """Return the paths of files of one's own, and the SHA-256 that the settings give, by path."""
    own = [file for file in files if file.path]
    return list(dict.fromkeys(file.path for file in own)), {
        file.path: file.sha256 for file in own if file.sha256
    }
