"""Tables as files: tidy CSV for programs. Markdown, LaTeX and JSON for readers."""

import html
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from headcount.analysis.frames import grouped
from headcount.analysis.inputs import BLEU
from headcount.analysis.outputs import Output
from headcount.analysis.stats import ALPHA
from headcount.base.errors import UserError
from headcount.base.files import write_json, write_text

NONE = "–"  # the cell of a value that is not known
_OPTIONS = ("where", "per", "optional")
_NUMBER = re.compile(rf"[+−-]?\.?\d|< ?\d|{NONE}|$")


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
}


def text(
    values: pd.Series, separator: str = ", ", repeat: bool = False, digits: int | None = None
) -> str:
    """Return different values in order of appearance, or with `repeat` the values of all rows."""
    known = values.dropna() if repeat else values.dropna().unique()
    form = readable if digits is None else f"{{:.{digits}f}}".format
    return separator.join(map(form, known)) or NONE


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
    return " ± ".join(map(readable, [known.mean(), known.std()][: len(known)])) or NONE


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


class Text(NamedTuple):
    """The text of one output."""

    caption: str
    warnings: list[str]
    notes: list[str]


def write_table(
    output: Output, frame: pd.DataFrame, text: Text, folder: Path, origin: dict[str, Any]
) -> None:
    """Write the `.csv`, `.md`, `.tex` and `.json` of a table."""
    _refuse_unwritable(frame, folder / output.name, output.allow_empty)
    write_data(output, frame, folder)
    shown = readable_table(output, frame)
    write_text(folder / f"{output.name}.md", _markdown(shown, text))
    write_text(folder / f"{output.name}.tex", _latex(shown, text, output.name))
    rows = {"columns": list(shown.columns), "rows": shown.to_numpy().tolist()}
    write_json(folder / f"{output.name}.json", text._asdict() | rows | {"provenance": origin})


def write_data(output: Output, frame: pd.DataFrame, folder: Path) -> None:
    """Write the CSV of an output: see `Output.csv` and `Output.csv_columns`."""
    chosen = frame[output.csv_columns or list(frame)]
    if output.metric != BLEU and output.metric not in output.csv.values():
        chosen = chosen.assign(metric=output.metric)
    write_csv(chosen.rename(columns=output.csv), folder / f"{output.name}.csv")


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame with ten significant digits. A missing value is an empty cell."""
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


def _refuse_unwritable(frame: pd.DataFrame, path: Path, allow_empty: bool) -> None:
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
