"""Scores of trained models with masked heads (HeadMask, figures 1, 2, 4 and 5), and masks."""

import pandas as pd

from headcount.analysis.collapse import with_updates
from headcount.analysis.frames import BASE, Runs
from headcount.analysis.scores import BOOTSTRAP, over_seeds

CHANGE = f"{BOOTSTRAP}, of the change from no mask"  # name of the interval of one seed's score
_POINT = ["pair", "test_set", "run", "order", "index", "heads_masked"]


def groups(masking: pd.DataFrame, run: str = "") -> pd.DataFrame:
    """Return scores with one group of heads masked, of all runs or of the run with this name."""
    rows = _ordered(masking, run, ["none", "group", "random_group"])
    drawn = rows["order"] == "random_group"
    rows["index"] = rows["index"].mask(drawn, 0)
    rows["heads_masked"] = rows["heads_masked"].mask(drawn, rows["heads_masked"].max())
    return over_seeds(rows, _POINT, draw="draw", bootstrap=CHANGE)


def cumulative(masking: pd.DataFrame, run: str = "") -> pd.DataFrame:
    """Return scores with more and more heads masked, of all runs or of the run with this name."""
    rows = _ordered(masking, run, ["ascending", "descending", "random_cumulative"])
    return over_seeds(rows, _POINT, draw="draw", bootstrap=CHANGE)


def _ordered(masking: pd.DataFrame, run: str, orders: list[str]) -> pd.DataFrame:
    """Return the rows of these orders, by every model's own ranking of its heads."""
    chosen = (masking["ranking"] == "own") & masking["order"].isin(orders)
    return masking[chosen & masking["run"].isin([run] if run else masking["run"])].copy()


def with_places(frame: pd.DataFrame) -> pd.DataFrame:
    """Return scores of groups with their names on an axis, and edges between kinds of groups."""
    places = frame["order"].map({"none": "none", "random_group": "random"})
    edges = {"none": 0.5, "random_group": frame["index"].max() + 0.5}
    places = places.fillna(frame["index"].astype(str))
    return frame.assign(place=places, edge=frame["order"].map(edges))


def by_number(frame: pd.DataFrame, trained_runs: Runs) -> pd.DataFrame:
    """Return the curves of the baseline and of the runs with the same N, for every N."""
    counts = {run: trained_runs[run].heads or 0 for run in frame["run"].unique()}
    numbers = list(dict.fromkeys(n for run, n in counts.items() if run != BASE)) or [0]
    parts = []
    for _, rows in frame.groupby(["pair", "test_set"], sort=False):
        for n in numbers:
            chosen = (rows["run"] == BASE) | (rows["run"].map(counts) == n)
            parts.append(rows[chosen].assign(number=f"N = {n}, " if n else ""))
    return pd.concat(parts, ignore_index=True)


def frequency(masks: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the updates of every interval that masked a head."""
    return with_updates(masks)
