"""How often training masked each head, from the masks.csv of runs: in all, and as it went on."""

from itertools import pairwise
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.figures import SHORT, Drawn, colour_bar, explain_kinds, heat_panels, note
from headcount.findings.headmask.importance import read_importance
from headcount.findings.results import HEAD, KEYS, Results, gather
from headcount.findings.setting import describe_setting


def read_masks(files: list[Path]) -> pd.DataFrame:
    """Shares of updates by interval: pair, run, seed, step, kind, layer, head, masked, updates.

    `masked` is the share, 0 to 1, of the interval's updates that masked the head; `updates` is the
    length of the interval, which ends at update `step`. Runs that mask no head have no rows.
    """
    return with_lengths(gather(files, ["step", *HEAD, "masked"]))


def with_lengths(table: pd.DataFrame) -> pd.DataFrame:
    """A table of intervals, each named by its last `step`, with their lengths as `updates`."""
    steps = table[[*KEYS, "step"]].drop_duplicates()
    before = steps.groupby(KEYS, sort=False)["step"].shift(fill_value=0)
    return table.merge(steps.assign(updates=steps["step"] - before), on=[*KEYS, "step"])


def second_half(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of intervals that lie wholly in the second half of their run; at least the last one.

    The table has `updates`, as `with_lengths` returns it.
    """
    end = table.groupby(KEYS)["step"].transform("max")
    return table[(table["step"] - table["updates"] >= end / 2) | (table["step"] == end)]


def frequencies(masks: pd.DataFrame) -> pd.Series:
    """Share of all updates at hand that masked a head, by pair, run, seed, kind, layer, head."""
    weighted = masks.assign(count=masks["masked"] * masks["updates"])
    sums = weighted.groupby([*KEYS, *HEAD], sort=False)[["count", "updates"]].sum()
    return sums["count"] / sums["updates"]


@exhibits.figure("headmask_frequency", needs=("masks", "importance"), beside="headmask_collapse")
def frequency(results: Results) -> Drawn:
    """How often training masked each head."""
    masks, runs = results.read(read_masks, "masks"), results.read(read_importance, "importance")
    caption = (
        "Share of updates that masked each head, over training; heads of a kind from the first "
        "layer (top) to the last. A bright line is a head that is masked in nearly every update "
        "and hardly learns."
    )
    return Drawn(_draw(masks), masks, caption, (explain_kinds(), *describe_setting(results, runs)))


def _draw(masks: pd.DataFrame) -> Figure:
    """A heat map per model: heads by updates, colour the share that masked; see `heat_panels`."""
    if masks.empty:
        return note("No run of this experiment masks heads in training.")
    figure, models = heat_panels(masks, 2.8, 2.6)
    for panel, of_model in models:
        image = _heat(panel, of_model)
    colour_bar(figure, image, "share of updates that masked the head")
    return figure


def _heat(panel: Axes, masks: pd.DataFrame) -> QuadMesh:
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
    panel.set_ylabel("heads, by kind and layer", fontsize="small")
    kinds = [head[0] for head in order]
    names = list(dict.fromkeys(kinds))
    bounds = [*map(kinds.index, names), len(order)]
    for first in bounds[1:-1]:
        panel.axhline(first, color="white", linewidth=1.5)
    middles = [sum(ends) / 2 for ends in pairwise(bounds)]
    panel.set_yticks(middles, [SHORT[kind] for kind in names], fontsize="small")
    panel.tick_params(axis="x", labelsize="small")
    return image
