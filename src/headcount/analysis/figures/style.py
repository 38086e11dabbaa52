"""One style for all figures: colours, panels, legends, colour bars and files."""

import textwrap
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from matplotlib.transforms import Bbox

from headcount.analysis import read_beside
from headcount.analysis.outputs import Output
from headcount.analysis.writer import Text, write_data
from headcount.base.files import write_bytes, write_json

PAGE = 9.2  # width of a page in inches; a wider drawing is shrunk with its text
GREY = "#6E6E6E"  # colour of references and controls

# Okabe and Ito's palette for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_MARKERS = "osD^vPX"
_LINES = ("-", "--", ":", "-.")
_BAR_LENGTH = 3.0  # inches, at most
_LETTERS = 13  # letters of a panel's title in an inch
_TICKS = 0.5  # inches beside a panel for its ticks
_LETTER, _HANDLE = 0.6, 4.0  # widths in a legend, in sizes of its font
_MARGIN = 0.1  # inches around a drawing
# A date would make every run another file.
_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}


def use_style() -> None:
    """Draw without a display, in the style of `style.yaml`."""
    matplotlib.use("Agg")
    matplotlib.rcParams.update(read_beside(__file__))


def make_styles(values: Sequence[Any], labels: Mapping[str, str]) -> dict[Any, dict[str, Any]]:
    """Return colour, line, marker and label of every value of the style column."""
    return {
        value: {
            "color": COLOURS[place % len(COLOURS)],
            "label": labels.get(str(value), str(value)),
            "marker": _MARKERS[place % len(_MARKERS)],
            "linestyle": _LINES[place // len(COLOURS) % len(_LINES)],
        }
        for place, value in enumerate(values)
    }


def grid(
    rows: int, columns: int, size: tuple[float, float], margins: tuple[float, float], **share: Any
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure with rows of panels of this size; margins beside and above, in inches."""
    width = min(size[0], (PAGE - margins[0]) / columns)
    whole = (max(width * columns + margins[0], 5.5), size[1] * rows + margins[1])
    figure = Figure(figsize=whole, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **share).tolist()


def set_title(panel: Axes, title: str) -> None:
    """Write the title of a panel at its left, in as many lines as it needs."""
    width = panel.figure.get_size_inches()[0] / panel.get_subplotspec().get_gridspec().ncols
    options = {"width": int(_LETTERS * (width - _TICKS)), "break_on_hyphens": False}
    lines = (textwrap.wrap(line, **options) for line in title.split("\n"))
    wrapped = "\n".join("\n".join(line) for line in lines)
    panel.set_title(wrapped, loc="left", fontsize="small")


def colour_bar(figure: Figure, image: ScalarMappable, label: str) -> None:
    """Draw one colour bar at the right of all panels."""
    shrink = min(0.9, _BAR_LENGTH / figure.get_size_inches()[1])
    place = {"shrink": shrink, "anchor": (0, 1), "aspect": 18}
    bar = figure.colorbar(image, ax=figure.axes, **place)
    if bar.norm.__class__ is LogNorm:
        set_log_ticks(bar.ax.yaxis)
    if bar.norm.__class__ is SymLogNorm:
        bar.formatter = StrMethodFormatter("{x:g}")
    bar.minorticks_off()
    bar.set_label(label, fontsize="small")
    bar.ax.tick_params(labelsize="small")


def set_log_ticks(axis: Axis) -> None:
    """Put plain numbers at 1, 2 and 5 times powers of ten on a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def legend_above(figure: Figure, order: Sequence[str]) -> None:
    """Draw one legend above all panels, every label once: labels in `order`, then others."""
    parts = [zip(*panel.get_legend_handles_labels(), strict=True) for panel in figure.axes]
    handles = {label: handle for handle, label in chain(*parts)}
    places = {label: place for place, label in enumerate(order)}
    labels = sorted(handles, key=lambda label: places.get(label, len(order)))
    size = FontProperties(size=matplotlib.rcParams["legend.fontsize"]).get_size_in_points() / 72
    longest = (_HANDLE + _LETTER * max(map(len, labels), default=0)) * size
    columns = max(1, min(len(labels), int(figure.get_size_inches()[0] / longest)))
    place = {"loc": "outside upper center", "ncols": columns, "frameon": False}
    if labels:
        figure.legend(handles=[handles[label] for label in labels], labels=labels, **place)


def write_figure(
    drawing: Figure, output: Output, frame: pd.DataFrame, text: Text, folder: Path, origin: dict
) -> None:
    """Write the `.pdf`, `.svg`, `.png`, `.csv` and `.json` of a figure."""
    drawing.draw_without_rendering()  # lays the figure out, once for all three formats
    drawing.set_layout_engine(None)  # not "none", which would draw once more for each format
    box = drawing.get_tightbbox().padded(_MARGIN)
    for kind in _METADATA:
        save_drawing(drawing, folder / f"{output.name}.{kind}", box)
    write_data(output, frame, folder)
    write_json(folder / f"{output.name}.json", text._asdict() | {"provenance": origin})


def save_drawing(figure: Figure, path: Path, box: Bbox | Literal["tight"]) -> None:
    """Write the part of a drawing in a box, as PDF, SVG or PNG by the ending of the file.

    The file is made in memory first: matplotlib fails when it closes a PDF on a full disk.
    """
    content, kind = BytesIO(), path.suffix[1:]
    figure.savefig(content, format=kind, metadata=_METADATA[kind], bbox_inches=box)
    write_bytes(path, content.getvalue())
