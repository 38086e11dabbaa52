"""Figures that a declaration cannot describe, drawn by hand."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headcount.analysis.captions import fill
from headcount.analysis.figures.axes import set_axis
from headcount.analysis.figures.marks import MARKS
from headcount.analysis.figures.style import draw_legend, grid, set_title, style_groups
from headcount.analysis.frames import Data
from headcount.analysis.outputs import Output

Style = dict[str, Any]


def importance_distribution(
    frame: pd.DataFrame, output: Output, styles: dict[str, Style], data: Data
) -> Figure:
    """Draw all heads by run (left) and heads by rank (right), a row for each pair.

    A pair with more runs than a panel has room for has several rows.
    """
    parts = [
        (pair, rows, runs)
        for pair, rows in frame.groupby("pair", sort=False)
        for runs in style_groups([run for run in styles if run in set(rows["run"])])
    ]
    height = max(2.6, 0.45 * max(len(runs) for *_, runs in parts))
    figure, axes = grid(len(parts), 2, (4.5, height), (0, 0.6))
    scale = {"scale": "linear" if (frame["importance"] <= 0).any() else "log"}
    label = fill(output.draw.x["label"], output, frame, data)
    for (left, right), (pair, rows, runs) in zip(axes, parts, strict=True):
        for place, run in enumerate(runs):
            _heads(left, rows.loc[rows["run"] == run, "importance"], place, styles[run])
            _ranked(right, rows[rows["run"] == run], styles[run])
        left.set_yticks(range(len(runs)), [styles[run]["label"] for run in runs])
        left.invert_yaxis()
        left.grid(axis="y", visible=False)
        right.axhline(1, color="black", linewidth=0.6)
        set_title(left, pair)
        set_axis(left, "x", scale, frame, label)
        set_axis(right, "x", {"integer": True}, frame, "rank (1: most important)")
        set_axis(right, "y", scale, frame, "importance / mean importance")
    draw_legend(figure, {style["label"]: Line2D([], [], **style) for style in styles.values()})
    return figure


def _heads(panel: Axes, values: pd.Series, place: int, style: Style) -> None:
    """Draw a dot for every head of one run, over the box of their quartiles."""
    y = place + np.random.default_rng(0).uniform(-0.3, 0.3, len(values))
    dots = pd.DataFrame({"x": values, "y": y})
    look = {key: style[key] for key in ("color", "markerfacecolor") if key in style}
    MARKS["scatter"](panel, dots, {"x": "x", "y": "y", "size": 7}, look | {"alpha": 0.5}, 0)
    line = {"color": style["color"], "linewidth": 1.5}
    lines = dict.fromkeys(("boxprops", "whiskerprops", "capprops"), line)
    where = {"positions": [place], "widths": 0.6, "orientation": "horizontal"}
    medians = {"medianprops": {"color": "black", "linewidth": 2}}
    panel.boxplot([values], whis=(0, 100), manage_ticks=False, **where, **lines, **medians)


def _ranked(panel: Axes, rows: pd.DataFrame, style: Style) -> None:
    """Draw the mean over seeds of the heads of every rank, with its standard deviation."""
    ranks = rows.groupby("rank")["relative"].agg(["mean", "std"]).fillna({"std": 0})
    low, high = ranks["mean"] - ranks["std"], ranks["mean"] + ranks["std"]
    table = ranks.assign(low=low.clip(lower=rows["relative"].min()), high=high).reset_index()
    layer = {"x": "rank", "y": "mean", "low": "low", "high": "high", "sparse": True}
    MARKS["line"](panel, table, layer, style, 0)
