"""Figures as files, alike everywhere, and their panels: one for each pair, task or model."""

import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import matplotlib
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_hex
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.transforms import Bbox

from headcount.base.files import write_bytes, write_json, write_text
from headcount.findings.described import Described
from headcount.findings.results import KEYS

PAGE = 9.2
"""Inches that a page has room for: a wider drawing is shrunk there, and its text with it."""

SMALLEST = 7.0
"""Points of text in a drawing, at least."""

MOST_LINES = 6
"""Curves in a panel, at most; more cannot be told apart."""

GREY = "#6E6E6E"
"""Of what others are compared with."""

_ABREAST = 3
_MARKERS = "osD^vPX"
_LINES = ("-", "--", ":", "-.")
_BAR_LENGTH = 3.0  # of a colour bar, in inches at most
_BAR = 1.2  # inches that a colour bar takes, with its words
_NARROWEST = 2.0  # inches of a heat map
_LETTERS = 14  # in an inch of its title
_LETTER, _HANDLE = 0.6, 4.0  # of a legend: widths of a letter and of a line, in sizes of its font
_MARGIN = 0.1  # inches around everything drawn
_HYPHEN = re.compile(r"(?<![\w.])-(?=[\d.])")  # where it stands for a minus
# A date would make every run another file.
_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
_STYLE = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "font.size": 10,
    "legend.fontsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",  # text stays text: searchable, and set in the page's font
    "text.parse_math": False,  # titles, words and names are text, whatever they hold
    "svg.hashsalt": "headcount",  # ids of an SVG are random otherwise
    "pdf.fonttype": 42,
}
# Okabe and Ito's palette, made to be told apart by colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class Drawn(Described):
    """One figure: the drawing, every number in it, and what it shows."""

    drawing: Figure
    data: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def colours(count: int) -> list[str]:
    """As many colours as there are things to tell apart; past the palette, a graded scale."""
    return list(COLOURS[:count]) if count <= len(COLOURS) else shades(count)


def shades(count: int) -> list[str]:
    """Colours of what has an order, from dark to light, none too light for a line."""
    scale = matplotlib.colormaps["viridis"]
    return [to_hex(scale(0.85 * place / max(1, count - 1))) for place in range(count)]


def use_style() -> None:
    """Draw without a display, alike everywhere."""
    matplotlib.use("Agg")
    matplotlib.rcParams.update(_STYLE)


def write_figures(figures: Mapping[str, Drawn], folder: Path, provenance: dict[str, Any]) -> None:
    """Write `<name>.pdf`, `.svg`, `.png`, the numbers drawn as `.csv`, and `.json` of each.

    The last holds the words and provenance.
    """
    for name, figure in figures.items():
        drawing = figure.drawing
        drawing.draw_without_rendering()  # lays the figure out, once for all three formats
        drawing.set_layout_engine(None)  # not "none", which would draw once more for each format
        box = drawing.get_tightbbox().padded(_MARGIN)
        for kind in _METADATA:
            save_drawing(drawing, folder / f"{name}.{kind}", box)
        numbers = figure.data.to_csv(index=False, lineterminator="\n")
        write_text(folder / f"{name}.csv", numbers)
        about = {**figure.words(), "provenance": provenance}
        write_json(folder / f"{name}.json", about)


def save_drawing(figure: Figure, path: Path, box: Bbox | Literal["tight"]) -> None:
    """Write the part of a drawing that a box holds, as PDF, SVG or PNG by the file's ending.

    Drawn in memory first: matplotlib's PDF, cut short by a full disk, fails in closing its file.
    """
    drawn, kind = BytesIO(), path.suffix[1:]
    figure.savefig(drawn, format=kind, metadata=_METADATA[kind], bbox_inches=box)
    write_bytes(path, drawn.getvalue())


def panels(
    count: int,
    columns: int = _ABREAST,
    width: float = 4.2,
    height: float = 3.2,
    margins: tuple[float, float] = (0, 0.6),
    share: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with this many panels, at most `columns` abreast; sizes of a panel in inches.

    `margins`: what a colour bar or a legend needs beside and above them. Panels are narrower where
    a page has no room. `share`: all have one vertical axis.
    """
    columns = min(count, columns)
    rows = -(-count // columns)
    width = min(width, (PAGE - margins[0]) / columns)
    # A single panel is widened, so that a legend above it has room.
    size = (max(width * columns + margins[0], 5.5), min(height, width) * rows + margins[1])
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=share).flat)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def start_at_zero(axes: Sequence[Axes]) -> None:
    """Begin vertical axes at 0, once all is drawn: a limit stops every axis that shares it."""
    for panel in axes:
        panel.set_ylim(bottom=0)


def heat_panels(
    table: pd.DataFrame, width: float, height: float, collapsed: Collection[tuple]
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """A figure with a panel per model: runs across; pairs, and below each its seeds, down.

    `table` has columns pair, run, seed. Runs of a seed take several rows where a page has no room
    for one. Titles name the models that `collapsed`. Returns the figure, and for each model its
    axes and rows.
    """
    runs = list(table["run"].unique())
    lines = table[["pair", "seed"]].drop_duplicates().itertuples(index=False, name=None)
    rows = -(-len(runs) // int((PAGE - _BAR) / _NARROWEST))  # of one seed
    columns = -(-len(runs) // rows)
    models = dict(list(table.groupby(KEYS, sort=False)))
    keys = [
        [(pair, run, seed) for run in runs[row * columns : (row + 1) * columns]]
        for pair, seed in lines
        for row in range(rows)
    ]
    width = min(width, (PAGE - _BAR) / columns)
    size = (max(width * columns + _BAR, 5.5), height * len(keys) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(keys), columns, squeeze=False)
    found = []
    for panel, key in zip(grid.flat, _filled(keys, columns), strict=True):
        if key in models:
            words = f"{key[1]}, seed {key[2]}{': collapsed' * (key in collapsed)}"
            lines = [*textwrap.wrap(words, int(_LETTERS * width)), key[0]]
            panel.set_title("\n".join(lines), loc="left", fontsize="small")
            panel.grid(visible=False)
            found.append((panel, models[key]))
        else:
            panel.remove()
    return figure, found


def _filled(keys: list[list[tuple]], columns: int) -> list[tuple | None]:
    """All keys, row by row, with None where a row has fewer than others."""
    return [key for row in keys for key in [*row, *[None] * (columns - len(row))]]


def is_first(panel: Axes) -> bool:
    """Whether a panel is the first of its row, which alone names what all of it share."""
    return panel.get_subplotspec().is_first_col()


def colour_bar(figure: Figure, image: ScalarMappable, words: str, **options: Any) -> Colorbar:
    """One colour bar for all panels, at their right, no longer than is pleasant."""
    shrink = min(0.9, _BAR_LENGTH / figure.get_size_inches()[1])
    place = {"shrink": shrink, "anchor": (0, 1), "aspect": 18}
    bar = figure.colorbar(image, ax=figure.axes, **place, **options)
    bar.set_label(words, fontsize="small")
    bar.ax.tick_params(labelsize="small")
    return bar


def number_heads(panel: Axes, count: int) -> None:
    """Numbers of heads below a map, as many as there is room for."""
    panel.set_xticks(range(0, count, -(-count // 10)))


def signed(value: float, plus: str = "+") -> str:
    """A number on an axis, as short as it can be; `plus` stands before one above 0."""
    sign = "−" if value < 0 else plus if value > 0 else ""
    return f"{sign}{abs(value):g}"


def with_minus(words: str) -> str:
    """Words with a true minus sign before numbers: `-1` becomes `−1`."""
    return _HYPHEN.sub("−", words)


def run_styles(runs: Sequence[str], collapsed: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Colour, line, marker and label of each run, the same in every figure of an experiment.

    The first run's colour is its own; past the palette others share theirs, with another line and
    another marker. `collapsed` comes from `collapsed_runs`: marks of these runs are hollow, and
    labels say it.
    """
    first, *others = COLOURS
    styles = {}
    for place, run in enumerate(runs):
        again, number = divmod(max(place - 1, 0), len(others))
        styles[run] = {"color": others[number] if place else first, "label": run}
        styles[run] |= {
            "marker": _MARKERS[place % len(_MARKERS)],
            "linestyle": _LINES[again % len(_LINES)],
        }
        if run in collapsed:
            hollow = {"markerfacecolor": "white", "label": f"{run} ({collapsed[run]})"}
            styles[run] |= hollow
    return styles


def run_groups(runs: Sequence[str]) -> list[list[str]]:
    """Runs that share a panel, no more than can be told apart: the first run is in each group."""
    first, *others = runs
    count = max(1, -(-len(others) // (MOST_LINES - 1)))
    size = -(-len(others) // count) or 1
    parts = [others[place : place + size] for place in range(0, len(others), size)]
    return [[first, *part] for part in parts or [[]]]


def note(words: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = Figure(figsize=(5.5, 1))
    figure.text(0.5, 0.5, words, ha="center", va="center")
    return figure


def title_words(*names: str, seed: int | str) -> str:
    """Names and a seed with commas between; what is empty is left out."""
    parts = [*names, "" if seed == "" else f"seed {seed}"]
    return ", ".join(part for part in parts if part)


def legend_above(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend above all panels, with every label of any of these once; curves come first."""
    found: dict[str, Artist] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    labels = sorted(found, key=lambda label: not isinstance(found[label], Container))
    draw_legend(figure, {label: found[label] for label in labels})


def draw_legend(
    figure: Figure, keys: Mapping[str, Artist | tuple[Artist, ...]], place: str = "upper"
) -> None:
    """One legend above all panels (or with `lower` below), as many keys in a row as fit.

    A key of several artists has them one upon the other.
    """
    size = FontProperties(size=matplotlib.rcParams["legend.fontsize"]).get_size_in_points() / 72
    longest = (_HANDLE + _LETTER * max(map(len, keys), default=0)) * size
    columns = max(1, min(len(keys), int(figure.get_size_inches()[0] / longest)))
    style = {"loc": f"outside {place} center", "ncols": columns, "frameon": False}
    figure.legend(handles=list(keys.values()), labels=list(keys), **style)
