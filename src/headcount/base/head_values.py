"""Numbers by head as CSV: kind, layer, head, statistic, value; one number a row."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_csv, write_csv

COLUMNS = ("kind", "layer", "head", "statistic", "value")


def write_head_values(
    path: Path, grid: HeadGrid, statistics: Mapping[str, Sequence[float] | np.ndarray]
) -> None:
    """Write statistics by name, each with one value per head in flat order; all digits kept.

    NaN says that a head has no such value, and makes no row.
    """
    rows = [
        [*head, name, float(value)]
        for name, values in statistics.items()
        for head, value in zip(grid.heads(), values, strict=True)
        if not math.isnan(value)
    ]
    write_csv(path, COLUMNS, rows)


def read_head_values(path: Path, statistic: str, grid: HeadGrid) -> np.ndarray:
    """One statistic of every head, [heads] in flat order.

    Raises UserError, naming the file and the first head at fault, unless it has one finite value
    for each head of this model and for no other head.
    """
    values = np.full(grid.size, math.nan)
    for where, row in read_csv(path, COLUMNS):
        if row["statistic"] == statistic:
            position, value = _read_row(row, grid, where)
            if not math.isnan(values[position]):
                raise UserError(
                    f"{where}: {grid.heads()[position].label()} has a second {statistic}; keep one"
                )
            values[position] = value
    for head, value in zip(grid.heads(), values, strict=True):
        if math.isnan(value):
            raise UserError(
                f"{path}: {head.label()} has no {statistic}; this file belongs to another model"
            )
    return values


def _read_row(row: dict[str, str], grid: HeadGrid, where: str) -> tuple[int, float]:
    """Flat position and value of a row."""
    try:
        head = Head(row["kind"], int(row["layer"]), int(row["head"]))
        value = float(row["value"])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise UserError(
            f"{where}: expected whole numbers for layer and head and a finite value, "
            f"found {', '.join(str(cell) for cell in row.values())}"
        )
    try:
        return grid.index(head), value
    except UserError as fault:
        raise UserError(f"{where}: {fault}; this file belongs to another model") from None
