"""Panels of figures: one for each pair or task, and the same colour for a run everywhere."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure

from headcount.findings.figures import colours
from headcount.findings.run_tables import KEYS

SHORT = {"enc_self": "enc", "dec_self": "dec", "dec_enc": "dec-enc"}  # kinds, on axes
_ABREAST = 3
_MARKERS = "osD^vPX"
_BAR_LENGTH = 3.0  # of a colour bar, in inches at most


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
