"""Files about heads: numbers as CSV (kind, layer, head, statistic, value), and lists of heads.

A list is text with one address per line, counted from 0, such as enc_self.0.3.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError, reading
from headcount.base.files import read_csv, write_csv

COLUMNS = ("kind", "layer", "head", "statistic", "value")
_REMEDY = "this file belongs to another model; make it again"

Statistics = Mapping[str, Sequence[float] | np.ndarray]  # one value per head, by name


def write_head_values(path: Path, grid: HeadGrid, statistics: Statistics) -> None:
    """Write statistics by name, each with one value per head in flat order."""
    write_csv(path, COLUMNS, head_rows(grid.heads(), statistics))


def head_rows(heads: Sequence[Head], statistics: Statistics) -> list[list[Any]]:
    """Return the rows of `COLUMNS`, with all digits. NaN is a missing value and has no row."""
    return [
        [*head, name, float(value)]
        for name, values in statistics.items()
        for head, value in zip(heads, values, strict=True)
        if not math.isnan(value)
    ]


def read_head_values(path: Path, statistic: str, grid: HeadGrid) -> np.ndarray:
    """Return one statistic of every head, [heads] in flat order, as `read_numbers` does."""
    return read_numbers(path, COLUMNS, [(*head, statistic) for head in grid.heads()], statistic)


def read_numbers(
    path: Path, columns: Sequence[str], keys: Iterable[Sequence[Any]], statistic: str = ""
) -> np.ndarray:
    """Return the last column, one number per key: the other columns, in any order.

    Rows of other statistics than a given one are skipped. Raises UserError for another set of keys.
    """
    values = {tuple(map(str, key)): math.nan for key in keys}
    for where, row in read_csv(path, columns):
        *key, text = map(str, row.values())
        if statistic in ("", row.get("statistic")):
            if not math.isnan(values.get(tuple(key), 0.0)) or not math.isfinite(_number(text)):
                wrong = f"{', '.join(key)} with {text}"
                expected = "expected finite values, one for each head"
                raise UserError(f"{where}: {expected}, found {wrong}; {_REMEDY}")
            values[tuple(key)] = _number(text)
    for key in (key for key, value in values.items() if math.isnan(value)):
        raise UserError(f"{path}: expected a value of {', '.join(key)}; {_REMEDY}")
    return np.array([*values.values()])


def read_head_list(path: Path, grid: HeadGrid) -> list[Head]:
    """Return the heads that a file lists. Empty lines and comments after a # are skipped."""
    heads: dict[Head, None] = {}  # in order of the file
    with reading(path, "saving text as UTF-8"):
        lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            head = read_address(text, grid, f"{path}:{number}: {text[:100]}")
            if head in heads:
                raise UserError(f"{path}:{number}: {text} stands in the list already; keep one")
            heads[head] = None
    return [*heads]


def read_address(text: str, grid: HeadGrid, where: str) -> Head:
    """Return the unit of an address such as enc_self.0.3. Raise UserError, begun by `where`."""
    with suppress(ValueError, UserError):
        head = Head.parse(text)
        grid.index(head)
        return head
    form = "<kind>.<layer>.<head> counted from 0, such as enc_self.0.3"
    raise UserError(f"{where}: expected a head of this model, {form}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
