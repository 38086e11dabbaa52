"""Which heads pruned runs have left, from their heads.csv, and which runs belong together."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_head_values
from headcount.base.settings.runs import PrunedSettings, label
from headcount.findings.run_tables import HEAD, read_runs, run_of

DECIDED = 0.9  # a gate with more than this chance of being 0, or of being 1, has polarised


@dataclass(frozen=True)
class PrunedModel:
    """One pruned model: whose it is, and what is left of it."""

    pair: str
    run: PrunedSettings
    seed: int
    grid: HeadGrid  # heads of the original model
    left: dict[str, tuple[int, ...]]  # by kind, one count per layer
    polarised: float | str  # share of gates, 0 to 1; empty where nothing was gated

    @property
    def by_kind(self) -> dict[str, int]:
        """Heads left of each kind."""
        return {kind: sum(layers) for kind, layers in self.left.items()}

    @property
    def heads_left(self) -> int:
        """Heads left in all."""
        return sum(self.by_kind.values())

    @property
    def scope_left(self) -> int:
        """Heads left of the kinds that could lose any."""
        return sum(self.by_kind[kind] for kind in self.run.kinds)

    @property
    def scope_heads(self) -> int:
        """Heads that the original model has of these kinds."""
        return sum(sum(self.grid.counts[kind]) for kind in self.run.kinds)

    @property
    def key(self) -> tuple[str, str, int]:
        """Pair, run and seed, as folders name them."""
        return self.pair, label(self.run), self.seed

    @property
    def control(self) -> tuple[str, str, int]:
        """The key of the λ = 0 run of this scope, start and seed."""
        return self.pair, label(self.run.control), self.seed

    @property
    def gates(self) -> tuple[str, str, int]:
        """The key of the gates run that this run is compared with, or is."""
        return self.pair, label(self.run.gates_run), self.seed

    @property
    def start(self) -> tuple[str, str, int]:
        """The key of the training run that was pruned."""
        return self.pair, label(self.run.init_from), self.seed


def read_pruned(kept: list[Path], runs: list[Path], grid: HeadGrid) -> list[PrunedModel]:
    """Every pruned model, in the files' order; `grid` has the heads of the original model.

    `kept` are heads.csv, `runs` the run.json beside them. Raises UserError for a file that does not
    say of each head whether it is left, and for a run that has not as many heads as its gates run.
    """
    known = read_runs(runs)
    models = [_read(path, known[run_of(path)[1]], grid) for path in kept]
    left = {model.key: model.heads_left for model in models}
    for model in models:
        if model.gates not in left or left[model.gates] != model.heads_left:
            raise UserError(
                f"{label(model.run)} ({model.pair}, seed {model.seed}) has {model.heads_left} "
                f"heads: expected as many as {label(model.run.gates_run)}, found "
                f"{left.get(model.gates, 'no such run')}; make prune/ again"
            )
    return models


def _read(path: Path, run: PrunedSettings, grid: HeadGrid) -> PrunedModel:
    pair, _, seed = run_of(path)
    kept = read_head_values(path, "gate", grid) != 0
    left = {
        kind: tuple(int(kept[grid.span(kind, layer)].sum()) for layer in range(len(layers)))
        for kind, layers in sorted(grid.counts.items(), key=lambda entry: KINDS.index(entry[0]))
    }
    return PrunedModel(pair, run, seed, grid, left, _polarised(path, run))


def _polarised(path: Path, run: PrunedSettings) -> float | str:
    """Share of the gates with P(0) or P(1) above `DECIDED`."""
    if run.method != "gates":
        return ""
    table = pd.read_csv(path)
    chances = table[table["statistic"].isin(["p_zero", "p_one"]) & table["kind"].isin(run.kinds)]
    if chances.empty:
        return ""
    return float((chances.groupby(HEAD)["value"].max() > DECIDED).mean())


def sweeps(models: list[PrunedModel]) -> Iterator[list[PrunedModel]]:
    """Gates runs that differ in λ alone, from most heads left to fewest; a list for each pair,
    scope, start and seed."""
    found: dict[tuple, list[PrunedModel]] = {}
    for model in models:
        if model.run.method == "gates":
            found.setdefault(model.control, []).append(model)
    for of_sweep in found.values():
        yield sorted(of_sweep, key=lambda model: (-model.heads_left, model.run.lambda_))
