"""BLEU changes by heads left, for every way to choose heads and every model to start from."""

import pandas as pd

from headcount.findings.run_tables import BASE
from headcount.findings.voita_pruning.comparison import START, TUNED, UNTUNED
from headcount.findings.voita_pruning.points import spread

COLUMNS = ["pair", "test_set", "scope", "panel", "contender", "lambda", "heads", "heads_left"]
COLUMNS += ["delta", "low", "high", "spread", "seeds"]
_GROUP = COLUMNS[:6]
_SIZED = ["pair", "seed", "gates_run"]
_PANELS = (TUNED, UNTUNED, START)


def method_points(records: pd.DataFrame, untuned: pd.DataFrame) -> pd.DataFrame:
    """A contender at one λ a row: columns of `COLUMNS`.

    `records` comes from `pruning_table`; `untuned` has rows of `voita_comparison.untuned`. `panel`:
    tuned and untuned (from the baseline, by method), start (gates runs, by start). `heads` of the
    original model and `heads_left` are those of the scope. `delta`: BLEU − that of the λ = 0
    control, or, untuned, of the start model with all heads; mean over seeds and draws, negative is
    worse. `low` and `high` bound what `spread` names.
    """
    base = records[records["start"] == BASE]
    elsewhere = records.loc[records["start"] != BASE, ["pair", "scope"]].drop_duplicates()
    starts = records[records["how"] == "gates"].merge(elsewhere, on=["pair", "scope"])
    parts = [
        base.assign(panel=TUNED, contender=base["how"]),
        starts.assign(panel=START, contender=starts["start"]),
    ]
    if len(untuned):
        sizes = base.rename(columns={"run": "gates_run"})[[*_SIZED, "scope_heads", "scope_left"]]
        parts.append(untuned.merge(sizes.drop_duplicates(), on=_SIZED).assign(panel=UNTUNED))
    points = pd.concat(parts, ignore_index=True)
    rows = [_point(key, found) for key, found in points.groupby(_GROUP, sort=False)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    # Panels of one test set and scope stand together.
    first = table.groupby(_GROUP[:3], sort=False).ngroup()
    order = table["panel"].map(_PANELS.index)
    return table.iloc[(first * len(_PANELS) + order).argsort(kind="stable")].reset_index(drop=True)


def _point(key: tuple, found: pd.DataFrame) -> dict:
    by_seed = found["delta"].astype(float).groupby(found["seed"]).mean()
    row = dict(zip(_GROUP, key, strict=True)) | {"heads": int(found["scope_heads"].iloc[0])}
    row |= {"heads_left": found["scope_left"].mean(), "delta": by_seed.mean()}
    return row | {"seeds": len(by_seed)} | spread(found, "delta")
