"""Tables as files, tidy for machines and readable for people, and the cells that people read."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from headcount.base.errors import UserError
from headcount.base.files import write_json, write_text
from headcount.findings.described import Described
from headcount.findings.significance import ALPHA

NONE = "–"
_NUMBER = re.compile(rf"[+−-]?\.?\d|< ?\d|{NONE}|$")
_Cells = TypeVar("_Cells", pd.DataFrame, pd.Series)
_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
}


@dataclass(frozen=True)
class Table(Described):
    """One table: tidy, as people read it, and what it shows."""

    tidy: pd.DataFrame
    shown: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def write_tables(tables: Mapping[str, Table], folder: Path, provenance: dict[str, Any]) -> None:
    """Write `<name>.csv` (the tidy one), `.md`, `.tex` (as people read it) and `.json` of each.

    The JSON holds the words, shown cells and provenance. Row indices are not written. The CSV keeps
    ten significant digits, so that they can be rounded again, the others fewer. Raises UserError if
    a table is empty (but that of the claims) or holds a missing or infinite number.
    """
    for name, table in tables.items():
        for frame in (table.tidy, table.shown):
            _check(frame, folder / name, name == "claims")
        exact = table.tidy.map(_exact).to_csv(index=False, lineterminator="\n")
        write_text(folder / f"{name}.csv", exact)
        write_text(folder / f"{name}.md", _markdown(table))
        write_text(folder / f"{name}.tex", _latex(table, name))
        about = {
            **table.words(),
            "columns": [str(column) for column in table.shown.columns],
            "rows": table.shown.map(_readable).to_numpy().tolist(),
            "provenance": provenance,
        }
        write_json(folder / f"{name}.json", about)


def _check(table: pd.DataFrame, path_stem: Path, may_be_empty: bool) -> None:
    if table.empty and not may_be_empty:
        raise UserError(f"{path_stem}: expected rows, found an empty table; are its inputs there?")
    for position, column in enumerate(table.columns):
        cells = table.iloc[:, position]
        bad = cells.isna() | cells.isin([math.inf, -math.inf])
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise UserError(
                f"{path_stem}: column {column!r}, row {row + 1}: expected a finite value, found "
                f"{cells.iloc[row]}; look for the run that produced it"
            )


def _exact(cell: Any) -> Any:
    """A float as text with ten significant digits, or as a whole number where it is one."""
    if not isinstance(cell, float | np.floating):
        return cell
    return str(int(cell)) if cell == int(cell) else f"{cell:.10g}"


def _readable(cell: Any) -> str:
    """A cell for people: two decimals from 1 on, three significant digits below."""
    if not isinstance(cell, float | np.floating):
        return str(cell)
    if cell == int(cell):
        return str(int(cell))
    return f"{cell:.2f}" if abs(cell) >= 1 else f"{cell:.3g}"


def _markdown(table: Table) -> str:
    """Caption, warnings, notes and cells, with an empty line between."""
    shown = table.shown
    cells = shown.map(_readable).map(plain_markdown)
    cells.columns = [plain_markdown(str(column)) for column in shown.columns]
    sides = ["right" if side == "r" else "left" for side in _alignment(shown)]
    body = cells.to_markdown(index=False, disable_numparse=True, colalign=sides)
    parts = [table.caption, *table.warnings, " ".join(table.notes)]
    words = "\n\n".join(plain_markdown(part) for part in parts if part)
    return f"{words}\n\n{body}\n"


def _latex(table: Table, name: str) -> str:
    style = table.shown.map(_readable).style.hide(axis="index")
    style = style.format(escape="latex").format_index(axis="columns", escape="latex")
    return style.to_latex(
        hrules=True,
        caption=table.text.translate(str.maketrans(_LATEX)),
        label=f"tab:{name}",
        column_format=_alignment(table.shown),
        position_float="centering",
    )


def _alignment(shown: pd.DataFrame) -> str:
    """One letter a column: numbers to the right, text to the left."""
    return "".join("r" if is_numeric_dtype(dtype) else "l" for dtype in shown.dtypes)


def sides(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Where the readable cells of each column stand: right if all begin as numbers do, else left.

    A dash, for what is not known, may stand among numbers.
    """
    by_column = [[row[place] for row in rows] for place in range(len(columns))]
    number = [all(map(_NUMBER.match, cells)) for cells in by_column]
    return ["right" if found else "left" for found in number]


def plain_markdown(text: str) -> str:
    """Text that neither opens a cell nor an HTML tag."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


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
    """A p-value: two significant digits, and no zeros without end; a dash where none is known.

    More digits where two would put it on the other side of `ALPHA`.
    """
    if p == "":
        return NONE
    shown = (f"{p:#.{digits}g}" for digits in range(2, 18))
    found = next((each for each in shown if (float(each) < ALPHA) == (p < ALPHA)), f"{p}")
    return "< 0.001" if p < 0.001 else found


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
