"""Differences with their intervals in words, and what an interval decides."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from headcount.findings.claims.verdicts import FAILS, HOLDS, UNDECIDED
from headcount.findings.significance import holm, paired_t
from headcount.findings.tables import NONE

SMALL = 0.05  # a p below it is called no chance


def with_interval(row: Mapping[str, float], digits: int, sign: str = "+") -> str:
    """`value` of a row and its 95 % interval from `low` to `high`; a dash without a value."""
    value, low, high = (row[name] for name in ("value", "low", "high"))
    if pd.isna(value):
        return NONE
    style = f"{sign}z.{digits}f"
    return f"{value:{style}}" + ("" if pd.isna(low) else f" ({low:{style}} to {high:{style}})")


def mean_of(values: pd.Series) -> dict[str, float]:
    """Mean of a number over trainings and its 95 % t interval, for `with_interval`.

    No interval of one training, nor of equal ones, which do not tell how far others would differ.
    """
    numbers = values.to_numpy(dtype=float)
    low, high = paired_t(numbers)[:2] if np.ptp(numbers) else (np.nan, np.nan)
    return {"value": float(numbers.mean()), "low": low, "high": high}


def mean_ratio_of(ratios: pd.Series) -> dict[str, float]:
    """Geometric mean of ratios over trainings and its 95 % interval, by t of their logarithms.

    Ratios are above 0, and so is what their interval has; else as `mean_of`.
    """
    return {name: float(np.exp(found)) for name, found in mean_of(np.log(ratios)).items()}


def above(low: float, high: float) -> str:
    """Whether a number is above 0 by its interval; undecided without one."""
    return HOLDS if low > 0 else FAILS if high < 0 else UNDECIDED


def beyond_chance(p: pd.Series) -> np.ndarray:
    """[test]: whether each p is below `SMALL` after Holm's correction for their number."""
    return holm(p.to_numpy(dtype=float)) < SMALL


def some_below(rows: pd.DataFrame) -> str:
    """Whether any of several differences, `low` to `high` with `p`, is below 0.

    Holds if the interval of one is, with a p below `SMALL` after Holm's correction for their
    number; does not hold if all of them are above 0; undecided without a row.
    """
    if rows.empty:
        return UNDECIDED
    if ((rows["high"] < 0) & beyond_chance(rows["p"].fillna(1.0))).any():
        return HOLDS
    return FAILS if (rows["low"] > 0).all() else UNDECIDED


def span(counts: pd.Series) -> str:
    """The least and the most of some counts, once if they are alike."""
    return " to ".join(f"{end:.0f}" for end in sorted({counts.min(), counts.max()}))


def capital(words: str) -> str:
    """Words as a sentence begins with them; other letters stay as they are."""
    return words[:1].upper() + words[1:]


def listed(runs: Iterable[str]) -> str:
    """Names as code, or that there is none."""
    return ", ".join(f"`{run}`" for run in runs) or "no run"
