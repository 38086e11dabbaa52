"""Files about heads: numbers as CSV (kind, layer, head, statistic, value), and lists of addresses.

A list is text with one address a line, counted from 0, such as enc_self.0.3.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_csv, write_csv

COLUMNS = ("kind", "layer", "head", "statistic", "value")
_ADDRESS = re.compile(r"(\w+)\.(\d{1,6})\.(\d{1,6})")


Statistics = Mapping[str, Sequence[float] | np.ndarray]  # a value per head, by name


def write_head_values(path: Path, grid: HeadGrid, statistics: Statistics) -> None:
    """Write statistics by name, each with one value per head in flat order; see `head_rows`."""
    write_csv(path, COLUMNS, head_rows(grid.heads(), statistics))


def head_rows(heads: Sequence[Head], statistics: Statistics) -> list[list[Any]]:
    """The cells of `COLUMNS`, all digits kept; NaN says that a head has no such value: no row."""
    return [
        [*head, name, float(value)]
        for name, values in statistics.items()
        for head, value in zip(heads, values, strict=True)
        if not math.isnan(value)
    ]


def read_head_values(path: Path, statistic: str, grid: HeadGrid) -> np.ndarray:
    """One statistic of every head, [heads] in flat order.

    Raises UserError, naming the file and the first head at fault, unless it has one finite value
    for each head of this model and for no other head.
    """
    found: dict[int, float] = {}
    for where, row in read_csv(path, COLUMNS):
        if row["statistic"] == statistic:
            position, value = _read_row(row, grid, where)
            if position in found:
                label = grid.heads()[position].label()
                raise UserError(f"{where}: {label} has a second {statistic}; keep one")
            found[position] = value
    for position, head in enumerate(grid.heads()):
        if position not in found:
            raise UserError(
                f"{path}: {head.label()} has no {statistic}; this file belongs to another model"
            )
    return np.array([found[position] for position in range(grid.size)])


def read_in_order(
    path: Path, columns: Sequence[str], keys: Sequence[Sequence[Any]], script: str
) -> np.ndarray:
    """The last column, a number for each of these keys in their order; the others are the keys.

    Raises UserError, naming file and line, for another key or number of rows, or a value that is
    not finite; `script` says what makes such a file.
    """
    values: list[float] = []
    for where, row in read_csv(path, columns):
        *found, text = row.values()
        wanted = [str(each) for each in keys[len(values)]] if len(values) < len(keys) else None
        value = _number(text)
        if found != wanted or not math.isfinite(value):
            told = ", ".join(wanted) if wanted else "the end of the file"
            raise UserError(
                f"{where}: expected {told}{' and a finite value' if wanted else ''}, found "
                f"{', '.join(map(str, row.values()))}; this file belongs to another model, or run "
                f"{script} again"
            )
        values.append(value)
    if len(values) < len(keys):
        raise UserError(
            f"{path}: expected {len(keys)} rows, found {len(values)}; this file belongs to another "
            f"model, or run {script} again"
        )
    return np.array(values)


def _number(text: str | None) -> float:
    """The number that a cell holds, NaN where it holds none."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan


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


def read_head_list(path: Path, grid: HeadGrid) -> list[Head]:
    """The heads that a file names, in its order; empty lines and what follows a # do not count.

    Raises UserError, with file, line and address, for a line that is no address, a head that the
    model does not have, and a head named twice.
    """
    heads: list[Head] = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as fault:
        raise UserError(f"{path}: expected UTF-8 text; save the file as UTF-8") from fault
    for number, line in enumerate(lines, start=1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        head = read_address(text, grid, f"{path}:{number}: {text[:100]}")
        if head in heads:
            raise UserError(f"{path}:{number}: {text} stands in the list already; keep one")
        heads.append(head)
    return heads


def read_address(text: str, grid: HeadGrid, where: str) -> Head:
    """The head of an address such as enc_self.0.3.

    Raises UserError, which begins with `where`, for another text and a head that is not there.
    """
    found = _ADDRESS.fullmatch(text)
    if not found:
        raise UserError(
            f"{where}: expected the address of a head, <kind>.<layer>.<head> counted from 0, such "
            "as enc_self.0.3"
        )
    head = Head(found[1], int(found[2]), int(found[3]))
    try:
        grid.index(head)
    except UserError as fault:
        raise UserError(f"{where}: {fault}") from None
    return head
