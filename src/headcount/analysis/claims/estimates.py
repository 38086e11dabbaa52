"""Numbers with 95 % intervals, as rows of frames: differences, ratios, shares, areas, curves.

Metrics of claims return a row for each model: columns of `MODEL`, value, low, high. Optional are
`part` of the claim, `shuffled_p` of the value being 0, and `tested`: whether the number has a test.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from headcount.analysis.claims.claims import ledger
from headcount.analysis.claims.evidence import MODEL
from headcount.analysis.stats import Z, wilson

BOUNDS = ["value", "low", "high"]
TEST = [*MODEL, "test_set"]


def listed(rows: pd.DataFrame, where: str = "", part: str = "") -> pd.DataFrame:
    """Return the numbers of a source as they are. A column may name the parts of the claim."""
    rows = rows.query(where) if where else rows
    return rows.assign(part=rows[part]) if part else rows


def largest(rows: pd.DataFrame, by: str, keys: Sequence[str] = TEST) -> pd.DataFrame:
    """Return the row with the largest number of each model, or of other keys."""
    return rows.dropna(subset=by).sort_values(by, kind="stable").drop_duplicates(keys, keep="last")


def contrast(
    first: pd.DataFrame, second: pd.DataFrame, keys: list[str], ratio: bool = False
) -> pd.DataFrame:
    """Return first minus (or over) second at the same keys, with the errors of both added."""
    both = first.merge(second, on=keys, suffixes=("", "_2"))
    for name, other in zip(BOUNDS, ("value_2", "high_2", "low_2"), strict=True):
        number = both.pop(other)
        both[name] = both[name] / number if ratio else both[name] - number
    return both


def compared(
    rows: pd.DataFrame, runs: pd.DataFrame, methods: list[list[str]], ratio: bool
) -> pd.DataFrame:
    """Return numbers of a method, or of one against another, or NaN without such runs."""
    parts = []
    for names in methods:
        both, *others = (chosen(rows, runs, name) for name in names)
        for other in others:
            same = [key for key in ("experiment", "pair") if both[key].isin(other[key]).any()]
            keys = [*same, "seed", *(key for key in ("test_set", "part") if key in rows)]
            both = contrast(both, other, keys, ratio)
            both["part"] = (both["part"] + ", " if "part" in both else "") + " to ".join(names)
        parts.append(both if len(both) else pd.DataFrame({"part": [" to ".join(names)]}))
    return pd.concat(parts)


def chosen(rows: pd.DataFrame, runs: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return rows of one of the methods in `claims.yaml`."""
    settings = runs[[*MODEL, "method", "masked", "heads"]]
    both = rows.merge(settings, "left", on=MODEL, suffixes=("_own", ""))
    return both.query(ledger().methods[method]).drop(columns=settings.columns[4:])


def combined(weights: np.ndarray, terms: pd.DataFrame) -> dict[str, float]:
    """Return a weighted sum of numbers. Its error is the sum of the errors of all terms."""
    scaled = weights[:, None] * terms[BOUNDS].to_numpy(dtype=float)
    ends = np.sort(scaled[:, 1:], axis=1).sum(axis=0)
    return dict(zip(BOUNDS, (scaled[:, 0].sum(), *ends), strict=True))


def by_group(
    rows: pd.DataFrame, keys: Sequence[str], number: Callable[[pd.DataFrame], dict | None]
) -> pd.DataFrame:
    """Return a row with the keys and the number of each group. Groups with None are left out."""
    groups = [(key, number(group)) for key, group in rows.groupby(list(keys), sort=False)]
    numbers = [dict(zip(keys, key, strict=True)) | result for key, result in groups if result]
    return pd.DataFrame(numbers, columns=None if numbers else [*keys, *BOUNDS])


def exact(rows: pd.DataFrame, value: pd.Series, error: pd.Series | float = 0.0) -> pd.DataFrame:
    """Return rows with numbers and their standard errors, 0 if they have none."""
    return rows.assign(value=value, low=value - Z * error, high=value + Z * error)


def of_trials(rows: pd.DataFrame, shares: pd.Series, trials: pd.Series) -> pd.DataFrame:
    """Return rows with shares of trials and Wilson's intervals."""
    ends = [wilson(share * count, count) for share, count in zip(shares, trials, strict=True)]
    bounds = pd.DataFrame(ends, rows.index, BOUNDS[1:])
    return rows.assign(value=shares, low=bounds["low"], high=bounds["high"])


def share_above(rows: pd.DataFrame, change: float, where: str = "") -> pd.DataFrame:
    """Return the share of rows with a value above `change`. Bounds count by ends of intervals."""
    rows = rows.query(where) if where else rows
    above = (rows[BOUNDS] > change).groupby([rows[key] for key in TEST], sort=False).mean()
    return above.reset_index().assign(tested=False)


def areas(curves: pd.DataFrame, ends: bool = True) -> pd.DataFrame:
    """Return the mean of curves over the share of heads masked. Two orders share their ends."""

    def area(curve: pd.DataFrame) -> dict[str, float]:
        curve = curve.groupby("heads_masked")[BOUNDS].mean().reset_index()
        steps = np.diff(curve["heads_masked"]) / np.ptp(curve["heads_masked"])
        weights = (np.append(steps, 0) + np.append(0, steps)) / 2
        return combined(weights, curve) if ends else combined(weights[1:-1], curve[1:-1])

    return by_group(curves, TEST, area)


def at_share(
    curves: pd.DataFrame, along: str, keys: Sequence[str] = TEST, place: float = 0
) -> pd.DataFrame:
    """Return values at a place (or at column `place`) of curves that begin at 0 with no change."""

    def interpolated(curve: pd.DataFrame) -> dict[str, float] | None:
        points = curve[curve[along] > 0].groupby(along)[BOUNDS].mean()
        at, points.loc[0.0] = place or curve["place"].iloc[0], 0.0
        points = points.sort_index()
        numbers = {name: np.interp(at, points.index, points[name]) for name in BOUNDS}
        return numbers if points.index[-1] >= at else None

    return by_group(curves, keys, interpolated)
