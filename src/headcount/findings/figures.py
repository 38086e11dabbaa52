"""Figures as files: PDF, SVG and PNG of the same drawing, with their data and provenance."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import matplotlib
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from headcount.base.files import write_bytes, write_json, write_text

_STYLE = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "font.size": 10,
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
class Drawn:
    """One figure: the drawing, every number in it, and what it shows."""

    drawing: Figure
    data: pd.DataFrame
    caption: str


def colours(count: int) -> list[str]:
    """As many colours as there are things to tell apart; past the palette, a graded scale."""
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    scale = matplotlib.colormaps["viridis"]
    return [to_hex(scale(place / (count - 1))) for place in range(count)]


_MARGIN = 0.1  # inches around everything drawn
# A date would make every run another file.
_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}


def use_style() -> None:
    """Draw without a display, alike everywhere."""
    matplotlib.use("Agg")
    matplotlib.rcParams.update(_STYLE)


def write_figures(figures: Mapping[str, Drawn], folder: Path, provenance: dict[str, Any]) -> None:
    """Write `<name>.pdf`, `.svg`, `.png`, the numbers drawn as `.csv`, and `.json` of each.

    The last holds caption and provenance.
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
        about = {"caption": figure.caption, "provenance": provenance}
        write_json(folder / f"{name}.json", about)


def save_drawing(figure: Figure, path: Path, box: Bbox | Literal["tight"]) -> None:
    """Write the part of a drawing that a box holds, as PDF, SVG or PNG by the file's ending.

    Drawn in memory first: matplotlib's PDF, cut short by a full disk, fails in closing its file.
    """
    drawn, kind = BytesIO(), path.suffix[1:]
    figure.savefig(drawn, format=kind, metadata=_METADATA[kind], bbox_inches=box)
    write_bytes(path, drawn.getvalue())
