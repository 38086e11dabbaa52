"""What each head is worth alone, as maps, and against another test set."""

import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from headcount.base.addresses import KINDS
from headcount.findings.figures import COLOURS
from headcount.findings.michel.metric import Metric
from headcount.findings.michel.single import LEVEL
from headcount.findings.panels import SHORT, colour_bar, legend_above, panels, title_words
from headcount.findings.run_tables import KEYS
from headcount.findings.significance import correlate

_TASK = [*KEYS, "test_set"]
_LINEAR = 0.5  # points: the colour scale is linear up to here, then logarithmic
_STRAIGHT = 2  # points: axes of the scatter are linear up to here, if they go far beyond
_TICKS = (-64, -16, -4, -1, 0, 1, 4, 16, 64)
_KIND_COLOURS = dict(zip(KINDS, COLOURS, strict=False))


def draw_single(table: pd.DataFrame, metric: Metric) -> Figure:
    """A row of maps per model and test set, a map per kind there is: layers down, heads across.

    `table`: our rows of `single_table`. Blue gains, red loses; a dot has p < `LEVEL`, a ring too
    once corrected for all heads of the model.
    """
    tasks = list(table.groupby(_TASK, sort=False))
    kinds = [kind for kind in KINDS if (table["kind"] == kind).any()]
    layers = max(table["layer"]) + 1
    size = (2.7 * len(kinds) + 1.4, max(1.6, 0.9 + 0.26 * layers) * len(tasks) + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(tasks), len(kinds), squeeze=False)
    limit = max(1.0, float(table["delta"].abs().max()))
    scale = SymLogNorm(_LINEAR, vmin=-limit, vmax=limit, base=2)
    for line, ((pair, run, seed, test), rows) in zip(grid, tasks, strict=True):
        for panel, kind in zip(line, kinds, strict=True):
            image = _map(panel, rows[rows["kind"] == kind], scale)
            panel.set_title(SHORT[kind], loc="left", fontsize="small")
        named = [pair, title_words(run, seed=seed), test]
        words = "\n".join(part for part in named if part)
        line[0].set_ylabel(f"{words}\n\nlayer", fontsize="x-small")
    bar = colour_bar(figure, image, f"{metric.word} change")
    bar.set_ticks([tick for tick in _TICKS if abs(tick) <= limit])
    bar.set_ticklabels([f"{tick:+d}" if tick else "0" for tick in bar.get_ticks().astype(int)])
    bar.minorticks_off()
    return figure


def _map(panel: Axes, rows: pd.DataFrame, scale: SymLogNorm) -> AxesImage:
    """One kind of one model; places where a layer has no head stay grey."""
    shape = (int(rows["layer"].max()) + 1, int(rows["head"].max()) + 1) if len(rows) else (1, 1)
    cells = np.full(shape, np.nan)
    cells[rows["layer"].astype(int), rows["head"].astype(int)] = rows["delta"].astype(float)
    panel.set_facecolor("#BBBBBB")
    image = panel.imshow(cells, cmap="RdBu", norm=scale, aspect="auto")
    strong = rows[rows["significant"] == 1]
    sure = rows[rows["p_holm"].astype(float) < LEVEL]
    rim = [patheffects.withStroke(linewidth=2, foreground="white")]  # to be seen on dark cells
    style = {"linestyle": "", "color": "black", "path_effects": rim}
    panel.plot(strong["head"], strong["layer"], marker=".", markersize=4, **style)
    panel.plot(sure["head"], sure["layer"], marker="o", markersize=9, fillstyle="none", **style)
    panel.set_xticks(range(shape[1]), range(shape[1]), fontsize=7)
    panel.set_yticks(range(shape[0]), range(shape[0]), fontsize=7)
    panel.set_xlabel("head", fontsize="small")
    panel.grid(visible=False)
    return image


def draw_transfer(points: pd.DataFrame, metric: Metric) -> Figure:
    """A panel per model and two test sets, a point per head; see `transfer_points`."""
    tasks = list(points.groupby([*_TASK, "other_test_set"], sort=False))
    figure, axes = panels(len(tasks), width=4.4, height=3.8)
    for panel, ((pair, run, seed, test, other), rows) in zip(axes, tasks, strict=True):
        for kind, colour in _KIND_COLOURS.items():
            of_kind = rows[rows["kind"] == kind]
            style = {"color": colour, "s": 22, "alpha": 0.8, "linewidths": 0}
            panel.scatter(of_kind["delta"], of_kind["other_delta"], label=SHORT[kind], **style)
        found = correlate(rows["delta"].to_numpy(), rows["other_delta"].to_numpy(), ranks=False)
        both = rows[["delta", "other_delta"]].to_numpy()
        ends = [both.min(), both.max()]
        panel.plot(ends, ends, color="#6E6E6E", linewidth=0.8, linestyle=":", zorder=0)
        panel.axhline(0, color="#6E6E6E", linewidth=0.6, zorder=0)
        panel.axvline(0, color="#6E6E6E", linewidth=0.6, zorder=0)
        if np.abs(both).max() > 2 * _STRAIGHT:
            panel.set_xscale("symlog", linthresh=_STRAIGHT, base=2)
            panel.set_yscale("symlog", linthresh=_STRAIGHT, base=2)
        words = f"{title_words(pair, run, seed=seed)}: r = {found.r:.2f}"
        panel.set_title(words, loc="left", fontsize="small")
        panel.set_xlabel(f"{metric.word} change on {test}")
        panel.set_ylabel(f"{metric.word} change on {other}")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
    if points["kind"].nunique() > 1:
        legend_above(figure, axes, len(KINDS))
    return figure
