"""How often training masked each head: a heat map of every model."""

from collections.abc import Collection
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.figures import Drawn, colour_bar, heat_panels, is_first, note
from headcount.findings.headmask.collapse import collapsed_models
from headcount.findings.headmask.importance import read_importance
from headcount.findings.kinds import SHORT, explain_kinds
from headcount.findings.masked_training import collapse_notes, read_masks
from headcount.findings.results import HEAD, Results
from headcount.findings.scores import Key
from headcount.findings.setting import describe_setting


@exhibits.figure(
    "headmask_frequency",
    needs=("masks", "importance"),
    uses=("masking", "curves"),
    beside="headmask_collapse",
)
def frequency(results: Results) -> Drawn:
    """How often training masked each head."""
    masks, runs = results.read(read_masks, "masks"), results.read(read_importance, "importance")
    caption = (
        "Share of updates that masked each head, over training; heads of a kind from the first "
        "layer (top) to the last. A bright line is a head that is masked in nearly every update "
        "and hardly learns."
    )
    collapsed = collapsed_models(results)
    setting = describe_setting(results, runs)
    notes = (explain_kinds(), *collapse_notes(collapsed), *setting)
    return Drawn(_draw(masks, collapsed), masks, caption, notes)


def _draw(masks: pd.DataFrame, collapsed: Collection[Key]) -> Figure:
    """A heat map per model: heads by updates, colour the share that masked; see `heat_panels`."""
    if masks.empty:
        return note("No run of this experiment masks heads in training.")
    figure, models = heat_panels(masks, 2.8, 2.8, collapsed)
    for panel, of_model in models:
        image = draw_frequency(panel, of_model)
    colour_bar(figure, image, "share of updates that masked the head")
    return figure


def draw_frequency(panel: Axes, masks: pd.DataFrame) -> QuadMesh:
    """One model; a column per interval, as wide as the interval."""
    wide = masks.pivot(index=HEAD, columns="step", values="masked")
    order = sorted(wide.index, key=lambda head: (KINDS.index(head[0]), *head[1:]))
    # As a picture inside the drawing: thousands of rectangles would make it slow to open.
    style = {"cmap": "viridis", "vmin": 0, "vmax": 1, "rasterized": True}
    edges = [0, *wide.columns], range(len(order) + 1)
    image = panel.pcolormesh(*edges, wide.loc[order], **style)
    panel.invert_yaxis()
    panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    panel.set_xlabel("updates", fontsize="small")
    if is_first(panel):
        panel.set_ylabel("heads, by kind and layer", fontsize="small")
    kinds = [head[0] for head in order]
    names = list(dict.fromkeys(kinds))
    bounds = [*map(kinds.index, names), len(order)]
    for place, (above, below) in enumerate(pairwise(order), start=1):
        if above[:2] != below[:2]:  # another layer
            wide = 1.6 if place in bounds else 0.4
            panel.axhline(place, color="white", linewidth=wide)
    middles = [sum(ends) / 2 for ends in pairwise(bounds)]
    panel.set_yticks(middles, [SHORT[kind] for kind in names], fontsize="small")
    panel.tick_params(axis="x", labelsize="small")
    return image
