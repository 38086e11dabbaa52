"""BLEU of trained models with groups of their heads masked, from the headmask.csv of runs."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from headcount.base.files import read_json
from headcount.findings.results import check_runs, gather
from headcount.findings.setting import OVER_SEEDS, of_one_training

COLUMNS = ["test_set", "ranking", "order", "index", "draw", "heads_masked", "bleu", "delta"]
COLUMNS += ["delta_low", "delta_high"]
RUN = ["pair", "test_set", "run"]
POINTS = [*RUN, "order", "index", "heads_masked", "bleu", "low", "high", "spread", "seeds"]

CUMULATIVE = ("ascending", "descending", "random_cumulative")
DRAWS, SEEDS, TEST = "range of draws", "standard deviation over seeds", "bootstrap, 95 %"
CHANGE = f"{TEST}, of the change from no mask"
_COVERED = {SEEDS: OVER_SEEDS} | dict.fromkeys((TEST, CHANGE), of_one_training("test sentences"))


def describe_cover(spreads: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each kind of these: what bars and bands of it cover; none for draws."""
    return tuple(dict.fromkeys(_COVERED[name] for name in spreads if name in _COVERED))


def read_masking(files: list[Path]) -> pd.DataFrame:
    """Rows of all runs, by each model's own ranking of its heads: pair, run, seed, `COLUMNS`.

    Raises UserError for a file without a row that masks nothing.
    """
    table = gather(files, COLUMNS)
    table = table[table["ranking"] == "own"]
    missing = "a row of ranking own and order none, which masks no head; run scripts/masking.py"
    check_runs(files, table[table["order"] == "none"], f"{missing} again")
    return table


def describe_tests(facts: list[Path]) -> str:
    """Sentences on test sets, how much of them, and search, from the headmask.json of runs."""
    found = [read_json(path) for path in facts]
    sizes = {f"{test} ({n} sentences)" for run in found for test, n in run["sentences"].items()}
    searches = {f"beam {run['beam']}, length penalty {run['length_penalty']}" for run in found}
    scored = f"Scored on {', '.join(sorted(sizes))}, by {'; '.join(sorted(searches))}."
    return f"{scored} BLEU is of these sentences; that in table bleu is of whole test sets."


def group_points(masking: pd.DataFrame) -> pd.DataFrame:
    """BLEU with one group masked at a time: columns of `POINTS`.

    Orders: `none`; `group` with its index, the smallest for the most important heads;
    `random_group`, all draws in one row.
    """
    alone = masking[masking["order"].isin(["none", "group", "random_group"])]
    drawn = alone["order"] == "random_group"
    return _over_seeds(alone.assign(index=alone["index"].mask(drawn, 0)), "index")


def cumulative_points(masking: pd.DataFrame) -> pd.DataFrame:
    """BLEU with more and more heads masked, from none to all: columns of `POINTS`.

    Orders: `ascending` (least important first), `descending`, `random_cumulative`; each in the
    order of the file, which is that of heads masked.
    """
    return _over_seeds(masking[masking["order"].isin(CUMULATIVE)], "heads_masked")


def _over_seeds(rows: pd.DataFrame, place: str) -> pd.DataFrame:
    """Means over draws and seeds at each place of each order, and how far they spread.

    `low` and `high` bound what `spread` names: the range of draws; the standard deviation over
    seeds (ddof 1); with one seed the bootstrap interval over test sentences of the difference to no
    mask, laid around the BLEU without one.
    """
    points = []
    for (*run, order, _), found in rows.groupby([*RUN, "order", place], sort=False):
        by_seed = found.groupby("seed")["bleu"].mean()
        mean = by_seed.mean()
        if order.startswith("random"):
            low, high, spread = found["bleu"].min(), found["bleu"].max(), DRAWS
        elif len(by_seed) > 1:
            low, high, spread = mean - by_seed.std(), mean + by_seed.std(), SEEDS
        else:
            unmasked = mean - found["delta"].iloc[0]
            low, high = (unmasked + found[side].iloc[0] for side in ("delta_low", "delta_high"))
            spread = CHANGE
        where = (order, found["index"].iloc[0], found["heads_masked"].iloc[0])
        points.append((*run, *where, mean, low, high, spread, len(by_seed)))
    return pd.DataFrame(points, columns=POINTS)
