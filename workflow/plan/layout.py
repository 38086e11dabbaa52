"""Paths of an experiment's files. No other module puts a path together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from headcount.base.folders import DESCRIPTION, WEIGHTS

Wildcards = Mapping[str, str]  # some of phase, pair, run and seed


@dataclass(frozen=True)
class Layout:
    """Folders of one experiment, and its files in the order of tables and figures."""

    experiment: str
    pairs: Sequence[str]
    seeds: Sequence[int]

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
        owners = product(self.pairs, runs, self.seeds)
        return [(pair, self.run(phase, pair, run, seed)) for pair, run, seed in owners]

    def text(self, pair: str = "{pair}") -> str:
        """Return the folder of a pair's cleaned text."""
        return f"data/text/{self.experiment}/{pair}"

    def bpe(self, pair: str = "{pair}") -> str:
        """Return the folder of a pair's text as subwords."""
        return f"data/bpe/{self.experiment}/{pair}"


def model_in(run: str) -> dict[str, str]:
    """Return description and weights of the model in a run's folder, as named inputs or outputs."""
    return {"model": f"{run}/model/{DESCRIPTION}", "weights": f"{run}/model/{WEIGHTS}"}


def alternatives(names: Iterable[str | int]) -> str:
    """Return a wildcard pattern that matches these names and nothing else."""
    return "|".join(re.escape(str(name)) for name in sorted(names)) or "(?!)"
