"""Figures as files, alike everywhere, and their panels: one for each pair, task or model."""

from collections.abc import Iterable, Mapping, Sequence
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
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from headcount.base.files import write_bytes, write_json, write_text
from headcount.findings.described import Described
from headcount.findings.results import KEYS

SHORT = {"enc_self": "enc", "dec_self": "dec", "dec_enc": "dec-enc"}  # kinds, on axes
_LONG = {
    "enc_self": "encoder self-attention",
    "dec_self": "decoder self-attention",
    "dec_enc": "encoder-decoder attention",
}
_ABREAST = 3
_MARKERS = "osD^vPX"
_BAR_LENGTH = 3.0  # of a colour bar, in inches at most
_MARGIN = 0.1  # inches around everything drawn
# A date would make every run another file.
_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
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
class Drawn(Described):
    """One figure: the drawing, every number in it, and what it shows."""

    drawing: Figure
    data: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def explain_kinds(kinds: Iterable[str] = tuple(SHORT)) -> str:
    """A sentence for notes: what the short names of these kinds of attention stand for."""
    return f"{', '.join(f'{SHORT[kind]}: {_LONG[kind]}' for kind in kinds)}."


def colours(count: int) -> list[str]:
    """As many colours as there are things to tell apart; past the palette, a graded scale."""
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    scale = matplotlib.colormaps["viridis"]
    return [to_hex(scale(place / (count - 1))) for place in range(count)]


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
) -> tuple[Figure, list[Axes]]:
    """A figure with this many panels, at most `columns` abreast; sizes of a panel in inches.

    `margins`: what a colour bar or a legend needs beside and above them.
    """
    columns = min(count, columns)
    rows = -(-count // columns)
    # A single panel is widened, so that a legend above it has room.
    size = (max(width * columns + margins[0], 5.5), height * rows + margins[1])
    figure = Figure(figsize=size, layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def heat_panels(
    table: pd.DataFrame, width: float, height: float
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """A figure with a panel per model: runs across; pairs, and below each its seeds, down.

    `table` has columns pair, run, seed. Returns the figure, and for each model its axes and rows.
    """
    runs = list(table["run"].unique())
    lines = list(table[["pair", "seed"]].drop_duplicates().itertuples(index=False, name=None))
    size = (max(width * len(runs) + 1.2, 5.5), height * len(lines) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(lines), len(runs), squeeze=False)
    models = dict(list(table.groupby(KEYS, sort=False)))
    found = []
    for (pair, seed), line in zip(lines, grid, strict=True):
        for run, axes in zip(runs, line, strict=True):
            if (pair, run, seed) in models:
                axes.set_title(f"{run}, seed {seed}\n{pair}", loc="left", fontsize="small")
                axes.grid(visible=False)
                found.append((axes, models[pair, run, seed]))
            else:
                axes.remove()
    return figure, found


def colour_bar(figure: Figure, image: ScalarMappable, words: str, **options: Any) -> Colorbar:
    """One colour bar for all panels, at their right, no longer than is pleasant."""
    shrink = min(0.9, _BAR_LENGTH / figure.get_size_inches()[1])
    place = {"shrink": shrink, "anchor": (0, 1), "aspect": 18}
    bar = figure.colorbar(image, ax=figure.axes, **place, **options)
    bar.set_label(words, fontsize="small")
    bar.ax.tick_params(labelsize="small")
    return bar


def run_styles(runs: Sequence[str]) -> dict[str, dict[str, str]]:
    """Colour and marker of each run, the same in every figure of an experiment."""
    return {
        run: {"color": colour, "marker": _MARKERS[place % len(_MARKERS)]}
        for place, (run, colour) in enumerate(zip(runs, colours(len(runs)), strict=True))
    }


def note(words: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = Figure(figsize=(5.5, 1))
    figure.text(0.5, 0.5, words, ha="center", va="center")
    return figure


def title_words(*names: str, seed: int | str) -> str:
    """Names and a seed with commas between; what is empty is left out."""
    parts = [*names, "" if seed == "" else f"seed {seed}"]
    return ", ".join(part for part in parts if part)


def legend_above(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """One legend above all panels, with every label of any of these once."""
    found: dict[str, Artist] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    keys = {"handles": list(found.values()), "labels": list(found)}
    figure.legend(**keys, loc="outside upper center", ncols=columns, frameon=False)
