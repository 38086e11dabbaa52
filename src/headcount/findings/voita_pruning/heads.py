"""Which heads pruned runs have left, from their heads.csv: the table that all others begin with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_head_values
from headcount.base.settings.runs import PrunedSettings, label
from headcount.findings.run_tables import HEAD, KEYS, read_runs_of, run_of
from headcount.findings.scores import Key

DECIDED = 0.9  # a gate with more than this chance of being 0, or of being 1, has polarised
LAYERS = [f"{kind}_layers" for kind in KINDS]
COLUMNS = [*KEYS, "how", "scope", "lambda", "start", "control", "gates_run", "heads", "heads_left"]
COLUMNS += ["scope_heads", "scope_left", *KINDS, *LAYERS, "polarised"]


def read_pruned(kept: list[Path], runs: list[Path], grid: HeadGrid) -> pd.DataFrame:
    """A pruned model a row, in the files' order: columns of `COLUMNS`.

    `kept` are heads.csv, `runs` the run.json beside them; `grid` has the heads of the original
    model. `how`: gates, ranked, drawn or scratch. `start`: the training run that was pruned;
    `control`: the λ = 0 run of the same scope, start and seed; `gates_run`: the gates run that this
    one is compared with, or is. `heads` of the original model, `heads_left`, and `scope_…` of the
    kinds that could lose any; `<kind>` and `<kind>_layers` (a tuple): heads left. `polarised`:
    share of gates, 0 to 1; empty where nothing was gated. Raises UserError for a file that does not
    say of each head whether it is left, for a run without its run.json, for one that has not as
    many heads as its gates run, and for one without a control.
    """
    known = read_runs_of(kept, runs)
    rows = [_model(path, known[run_of(path)[1]], grid) for path in kept]
    left = {key_of(row): row["heads_left"] for row in rows}
    for row in rows:
        words = f"{row['run']} ({row['pair']}, seed {row['seed']})"
        expected = left.get(key_of(row, "gates_run"), "no such run")
        if expected != row["heads_left"]:
            raise UserError(
                f"{words} has {row['heads_left']} heads: expected as many as {row['gates_run']}, "
                f"found {expected}; make prune/ again"
            )
        if key_of(row, "control") not in left:
            raise UserError(
                f"{words}: expected its control {row['control']!r}, fine-tuned for as many updates "
                "with λ = 0, found no such run; add it to `pruned`"
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def key_of(model: Mapping[str, Any], name: str = "run") -> Key:
    """Pair, run and seed of a model, or of its `start`, its `control` or its `gates_run`."""
    return model["pair"], model[name], model["seed"]


def _model(path: Path, run: PrunedSettings, grid: HeadGrid) -> dict[str, Any]:
    gates = read_head_values(path, "gate", grid) != 0
    layers: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for kind, _, span in grid.layers():
        layers[kind].append(int(gates[span].sum()))
    left = {kind: sum(counts) for kind, counts in layers.items()}
    named = {"gates_run": run.gates_run, "control": run.control, "start": run.init_from}
    return (
        dict(zip(KEYS, run_of(path), strict=True))
        | {"how": run.word, "scope": run.scope, "lambda": run.lambda_}
        | {name: label(other) for name, other in named.items()}
        | {"heads": grid.size, "heads_left": sum(left.values())}
        | {"scope_heads": sum(sum(grid.counts[kind]) for kind in run.kinds)}
        | {"scope_left": sum(left[kind] for kind in run.kinds), **left}
        | {f"{kind}_layers": tuple(counts) for kind, counts in layers.items()}
        | {"polarised": _polarised(path, run)}
    )


def _polarised(path: Path, run: PrunedSettings) -> float | str:
    """Share of the gates with P(0) or P(1) above `DECIDED`."""
    table = pd.read_csv(path)
    chances = table[table["statistic"].isin(["p_zero", "p_one"]) & table["kind"].isin(run.kinds)]
    if run.method != "gates" or chances.empty:
        return ""
    return float((chances.groupby(HEAD)["value"].max() > DECIDED).mean())
