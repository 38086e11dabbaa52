"""How often each head was masked as training went on."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.base.addresses import KINDS
from headcount.findings.panels import SHORT, colour_bar, heat_panels, note
from headcount.findings.run_tables import HEAD, KEYS


def draw_frequency(masks: pd.DataFrame) -> Figure:
    """A heat map per model: heads by updates, colour the share that masked; see `heat_panels`.

    `masks` comes from `read_masks`. Without rows: a figure that says so.
    """
    if masks.empty:
        return note("No run of this experiment masks heads in training.")
    figure, grid = heat_panels(masks[KEYS], 2.8, 2.6)
    for model, panel in grid.items():
        image = _heat(panel, masks[(masks[KEYS] == list(model)).all(axis=1)])
    colour_bar(figure, image, "share of updates that masked the head")
    return figure


def _heat(panel: Axes, masks: pd.DataFrame) -> QuadMesh:
    """One model; a column per interval, as wide as the interval."""
    wide = masks.pivot(index=HEAD, columns="step", values="masked")
    order = sorted(wide.index, key=lambda head: (KINDS.index(head[0]), *head[1:]))
    starts = [0, *wide.columns]
    places = range(len(order) + 1)
    # As a picture inside the drawing: thousands of rectangles would make it slow to open.
    style = {"cmap": "viridis", "vmin": 0, "vmax": 1, "rasterized": True}
    image = panel.pcolormesh(starts, places, wide.loc[order], **style)
    panel.invert_yaxis()
    panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    panel.set_xlabel("updates", fontsize="small")
    panel.set_ylabel("heads, by kind and layer", fontsize="small")
    kinds = [head[0] for head in order]
    firsts = [kinds.index(kind) for kind in KINDS if kind in kinds]
    for first in firsts[1:]:
        panel.axhline(first, color="white", linewidth=1.5)
    ends = [*firsts[1:], len(order)]
    middles = [(first + end) / 2 for first, end in zip(firsts, ends, strict=True)]
    names = [SHORT[kind] for kind in KINDS if kind in kinds]
    panel.set_yticks(middles, names, fontsize="small")
    panel.tick_params(axis="x", labelsize="small")
    return image
