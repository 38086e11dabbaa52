"""Readable cells: functions from the rows of a group to a text. They skip missing values."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from headcount.analysis.stats import ALPHA

NONE = "–"  # the cell of a value that is not known
_OPTIONS = ("where", "per", "optional")


def text(values: pd.Series, separator: str = ", ", repeat: bool = False) -> str:
    """Return different values in order of appearance, or with `repeat` the values of all rows."""
    known = values.dropna() if repeat else values.dropna().unique()
    return separator.join(map(readable, known)) or NONE


def mean(
    values: pd.Series, digits: int | None = 2, sign: bool = False, unit: str = "", spread: str = ""
) -> str:
    """Return the mean with this many decimals, or with None, one unless it is a whole number.

    From two values on, `spread` adds the standard deviation (`sd`) or least and largest (`range`).
    """
    known = values.dropna().astype(float)
    if known.empty:
        return NONE
    decimals = 1 - float(known.mean()).is_integer() if digits is None else digits
    form = f"z,.{decimals}f"
    deviation = f" ± {known.std():{form}}" * (spread == "sd" and len(known) > 1)
    ends = f" ({known.min():{form}} to {known.max():{form}})"
    ends *= spread == "range" and len(known) > 1
    return f"{known.mean():{'+' * sign}{form}}{deviation}{ends}{unit}"


def mean_significant(values: pd.Series) -> str:
    """Return mean ± standard deviation with three significant digits below 1."""
    known = values.dropna().astype(float)
    both = [known.mean(), known.std()][: len(known)]
    shown = (f"{x:.2f}" if abs(x) >= 1 or x == 0 else f"{x:#.3g}" for x in both)
    return " ± ".join(shown) or NONE


def percent(values: pd.Series, digits: int = 0) -> str:
    """Return the mean of shares as a percentage."""
    return mean(values.astype(float) * 100, digits, unit=" %")


def interval(low: pd.Series, high: pd.Series, digits: int = 2) -> str:
    """Return intervals, one for each row."""
    both = pd.DataFrame({"low": low, "high": high}).dropna().itertuples(index=False)
    return ", ".join(f"{a:+z.{digits}f} to {b:+z.{digits}f}" for a, b in both) or NONE


def ends(values: pd.Series, digits: int = 2) -> str:
    """Return intervals whose low and high ends stand in turn, a row for each."""
    known = values.dropna().to_numpy(float)
    return interval(known[::2], known[1::2], digits)


def bounds(*columns: pd.Series, digits: int = 2, unit: str = "", sign: bool = False) -> str:
    """Return the first value of three columns, with low and high in brackets where known."""
    rows = pd.DataFrame(dict(enumerate(columns))).astype(float).dropna(subset=0)
    if rows.empty:
        return NONE
    middle, low, high = (f"{end:{'+' * sign}z.{digits}f}" for end in rows.iloc[0])
    return f"{middle}{unit}" + f" ({low} to {high})" * bool(rows.iloc[0].notna().all())


def p_value(value: float) -> str:
    """Return one p value with two significant digits, or more to stay on its side of alpha."""
    if value < 0.001:
        return "< 0.001"
    shown = (f"{value:#.{digits}g}" for digits in range(2, 18))
    return next((text for text in shown if (float(text) < ALPHA) == (value < ALPHA)), f"{value}")


# Formats that a declaration may name.
FORMATS: dict[str, Callable[..., str]] = {
    **{f.__name__: f for f in (text, mean, mean_significant, percent, interval, ends, bounds)},
    "first": lambda values: readable(next(iter(values.dropna()), None)),
    "count": lambda values: str(values.nunique()),  # different known values
    "known": lambda values: NONE if values.isna().all() and len(values) else str(values.count()),
    "sum": lambda values: readable(values.sum()) if values.notna().any() else NONE,
    "p": lambda values: ", ".join(map(p_value, values.dropna())) or NONE,
    "mean_sd": partial(mean, spread="sd"),
    "mean_range": partial(mean, spread="range"),
    "mean_count": partial(mean, digits=None),
    "thousands": partial(mean, digits=0),
}


def cell(rows: pd.DataFrame, spec: dict[str, Any]) -> str:
    """Return the cell that a declaration describes: `{format: column or columns, option: …}`.

    With `per: seed`, the format gets the mean of every seed.
    """
    options = {key: value for key, value in spec.items() if key not in _OPTIONS}
    (name,) = [key for key in options if key in FORMATS]
    columns = options.pop(name)
    chosen = rows.query(spec["where"]) if "where" in spec else rows
    names = [columns] if isinstance(columns, str) else columns
    if "per" in spec:
        chosen = chosen.groupby(spec["per"], sort=False)[names].mean()
    return FORMATS[name](*(chosen[column] for column in names), **options)


def readable(value: Any) -> str:
    """Return a value as text: two decimals from 1 on, three significant digits below."""
    if pd.isna(value):
        return NONE
    if not isinstance(value, float) or value.is_integer():
        return str(int(value) if isinstance(value, float) else value)
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"
