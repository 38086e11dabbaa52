"""Tables as files: tidy CSV for programs. Markdown, LaTeX and JSON for readers."""

import html
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from headcount.analysis.cells import NONE, cell, readable
from headcount.analysis.frames import grouped
from headcount.analysis.outputs import Output
from headcount.base.errors import UserError
from headcount.base.files import write_json, write_text

_NUMBER = re.compile(rf"[+−-]?\.?\d|< ?\d|{NONE}|$")
_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
}


class Text(NamedTuple):
    """The text of one output."""

    caption: str
    warnings: list[str]
    notes: list[str]


def write_table(
    output: Output, frame: pd.DataFrame, text: Text, folder: Path, origin: dict[str, Any]
) -> None:
    """Write the `.csv`, `.md`, `.tex` and `.json` of a table.

    Raises UserError if the frame has no row or an infinite number.
    """
    _check(frame, folder / output.name, output.allow_empty)
    write_data(output, frame, folder)
    shown = readable_table(output, frame)
    write_text(folder / f"{output.name}.md", _markdown(shown, text))
    write_text(folder / f"{output.name}.tex", _latex(shown, text, output.name))
    rows = {"columns": list(shown.columns), "rows": shown.to_numpy().tolist()}
    write_json(folder / f"{output.name}.json", text._asdict() | rows | {"provenance": origin})


def write_data(output: Output, frame: pd.DataFrame, folder: Path) -> None:
    """Write the CSV of an output: see `Output.csv` and `Output.csv_columns`."""
    chosen = frame[output.csv_columns or list(frame)]
    write_csv(chosen.rename(columns=output.csv), folder / f"{output.name}.csv")


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame with ten significant digits. A missing value is an empty cell.

    Columns whose name begins with _ are for readers and figures only.
    """
    frame = frame[[name for name in frame if not str(name).startswith("_")]]
    exact = frame.astype(object).where(frame.notna(), "").map(_exact)
    write_text(path, exact.to_csv(index=False, lineterminator="\n"))


def readable_table(output: Output, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table that people read, as text: see `Output.rows` and `Output.columns`."""
    frame = frame.query(output.where) if output.where else frame
    if not output.columns:
        return frame.map(readable).rename(columns=_heading)
    headings = [_heading(output.csv.get(name, name)) for name in output.rows]
    lines = [
        [*map(readable, key), *(cell(group, spec) for spec in output.columns.values())]
        for key, group in grouped(frame, output.rows)
    ]
    shown = pd.DataFrame(lines, columns=[*headings, *output.columns])
    optional = [heading for heading, spec in output.columns.items() if spec.get("optional")]
    return shown.drop(columns=[name for name in optional if (shown[name] == NONE).all()])


def _heading(column: str) -> str:
    return column.replace("_", " ").strip()


def _check(frame: pd.DataFrame, path: Path, allow_empty: bool) -> None:
    if frame.empty and not allow_empty:
        raise UserError(f"{path}: expected rows, found an empty table; are its inputs there?")
    numbers = frame.select_dtypes("number").astype(float)
    for column in numbers.columns[np.isinf(numbers).any()]:
        raise UserError(
            f"{path}: column {column!r}: expected finite values, found "
            f"{numbers[column].abs().max()}; look for the run that produced it"
        )


def _exact(value: Any) -> Any:
    """Return a float as text with ten significant digits, or as a whole number."""
    if not isinstance(value, float | np.floating) or math.isinf(value):
        return value
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _markdown(shown: pd.DataFrame, text: Text) -> str:
    cells = shown.map(plain_markdown)
    cells.columns = [plain_markdown(heading) for heading in shown.columns]
    body = cells.to_markdown(index=False, disable_numparse=True, colalign=sides(shown))
    parts = [text.caption, *text.warnings, " ".join(text.notes)]
    above = "\n\n".join(plain_markdown(part) for part in parts if part)
    return f"{above}\n\n{body}\n"


def _latex(shown: pd.DataFrame, text: Text, name: str) -> str:
    style = shown.style.hide(axis="index")
    style = style.format(escape="latex").format_index(axis="columns", escape="latex")
    caption = " ".join([text.caption, *text.warnings, *text.notes])
    return style.to_latex(
        hrules=True,
        caption=caption.translate(str.maketrans(_LATEX)),
        label=f"tab:{name}",
        column_format="".join(side[0] for side in sides(shown)),
        position_float="centering",
    )


def sides(shown: pd.DataFrame) -> list[str]:
    """Return the alignment of every column: right if all its cells begin as numbers do."""
    return ["right" if all(map(_NUMBER.match, shown[name])) else "left" for name in shown]


def plain_markdown(text: str) -> str:
    """Return a text that opens neither a cell nor an HTML tag."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")
