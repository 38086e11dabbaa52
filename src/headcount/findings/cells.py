"""Cells of tables as people read them, over seeds."""

from collections.abc import Sequence
from typing import TypeVar

import pandas as pd

NONE = "–"

_Cells = TypeVar("_Cells", pd.DataFrame, pd.Series)


def fill_empty(cells: _Cells) -> _Cells:
    """The same cells, of any kind; those in which nothing is known are empty text."""
    return cells.astype(object).where(cells.notna(), "")


def mean_sd(values: Sequence[float | str], sign: str = "", digits: int = 2) -> str:
    """Mean and, from two values on, ± standard deviation (ddof 1); a dash where none is known.

    `sign` "+" writes the sign of positive means too.
    """
    known = pd.Series([value for value in values if value != ""], dtype=float)
    if known.empty:
        return NONE
    deviation = f" ± {known.std():.{digits}f}" if len(known) > 1 else ""
    return f"{known.mean():{sign}z.{digits}f}{deviation}"


def mean_count(counts: Sequence[int]) -> str:
    """Mean of counts over seeds: a whole number where it is one, else with one decimal."""
    mean = sum(counts) / len(counts)
    return f"{mean:.0f}" if mean == int(mean) else f"{mean:.1f}"


def interval(low: Sequence[float], high: Sequence[float]) -> str:
    """95 % intervals, one for each seed."""
    pairs = zip(low, high, strict=True)
    return ", ".join(f"{a:+z.2f} to {b:+z.2f}" for a, b in pairs if a != "") or NONE


def p_value(p: float | str) -> str:
    """A p-value: two significant digits, and no zeros without end; a dash where none is known."""
    if p == "":
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:#.2g}"


def with_bounds(
    value: float | str, low: float | str, high: float | str, digits: int = 2, unit: str = ""
) -> str:
    """A value, and in brackets the ends of its interval where they are known."""
    if value == "":
        return NONE
    bounds = "" if low == "" else f" ({low:.{digits}f} to {high:.{digits}f})"
    return f"{value:.{digits}f}{unit}{bounds}"


def run_cells(pair: str, run: str, seed: int | str) -> dict[str, str]:
    """Which run a row is of."""
    return {"pair": pair, "run": run, "seed": str(seed) or NONE}
