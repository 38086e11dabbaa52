"""Where the files of an experiment lie: the one place that puts a path together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from headcount.base.folders import DESCRIPTION, WEIGHTS

Wildcards = Mapping[str, str]  # some of phase, pair, run and seed


@dataclass(frozen=True)
class Layout:
    """The folders of one experiment, and its files in the order of tables and figures."""

    experiment: str
    pairs: Sequence[str]
    seeds: Sequence[int]

    @property
    def results(self) -> str:
        """Folder of all that is found out; a phase writes below one of its folders."""
        return f"results/{self.experiment}"

    def run(self, phase: str, pair: str = "{pair}", run: str = "{run}", seed="{seed}") -> str:
        """Folder of what a phase has of a run; a part that is not given stays a wildcard."""
        return f"{self.results}/{phase}/{pair}/{run}/seed{seed}"

    def beside(self, phase: str, w: Wildcards, run: str, *names: str) -> list[str]:
        """Files of another run of the pair and seed of `w`."""
        return [f"{self.run(phase, w['pair'], run, w['seed'])}/{name}" for name in names]

    def folders(self, phase: str, runs: Iterable[str]) -> list[tuple[str, str]]:
        """(pair, folder) of what a phase has of each run: pairs, then runs, then seeds."""
        each = product(self.pairs, runs, self.seeds)
        return [(pair, self.run(phase, pair, run, seed)) for pair, run, seed in each]

    def text(self, pair: str = "{pair}") -> str:
        """Folder of a pair's cleaned text."""
        return f"data/text/{self.experiment}/{pair}"

    def bpe(self, pair: str = "{pair}") -> str:
        """Folder of a pair's text as subwords."""
        return f"data/bpe/{self.experiment}/{pair}"

    def texts(self, pair: str, splits: Sequence[str], *ends: str) -> list[str]:
        """Files of a pair's cleaned text: splits, then ends (src, tgt, json)."""
        return [f"{self.text(pair)}/{split}.{end}" for split in splits for end in ends]


def model_in(run: str) -> dict[str, str]:
    """Description and weights of the model in a run's folder, as named inputs or outputs."""
    return {"model": f"{run}/model/{DESCRIPTION}", "weights": f"{run}/model/{WEIGHTS}"}


def alternatives(names: Iterable[str]) -> str:
    """Wildcard pattern that matches these names and nothing else; of no names, nothing."""
    return "|".join(map(re.escape, names)) or "(?!)"
