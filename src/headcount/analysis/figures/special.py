"""Figures that a declaration cannot describe, drawn by hand."""

import unicodedata
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headcount.analysis.captions import fill
from headcount.analysis.figures import style
from headcount.analysis.figures.marks import MARKS, set_axis
from headcount.analysis.frames import RUN, Data
from headcount.analysis.outputs import Output

Style = dict[str, Any]

_CELL, _LEAST = 0.27, 0.15  # inches of a cell of an attention map, at most and at least
_WORDS = 1.3  # inches of words beside an attention map
_FEWEST = 5  # cells, so that titles have room


def importance_distribution(
    frame: pd.DataFrame, output: Output, styles: dict[str, Style], data: Data
) -> Figure:
    """Draw all heads by run (left) and by rank (right). A pair with many runs has several rows."""
    parts = [
        (pair, rows, runs)
        for pair, rows in frame.groupby("pair", sort=False)
        for runs in style.style_groups([run for run in styles if run in set(rows["run"])])
    ]
    height = max(2.6, 0.45 * max(len(runs) for *_, runs in parts))
    figure, axes = style.grid(len(parts), 2, (4.5, height), (0, 0.6))
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
        style.set_title(left, pair)
        set_axis(left, "x", scale, frame, label)
        set_axis(right, "x", {"integer": True}, frame, "rank (1: most important)")
        set_axis(right, "y", scale, frame, "importance / mean importance")
    handles = {look["label"]: Line2D([], [], **look) for look in styles.values()}
    style.draw_legend(figure, handles)
    return figure


def _heads(panel: Axes, values: pd.Series, place: int, of_run: Style) -> None:
    """Draw a dot for every head of one run, over the box of their quartiles."""
    y = place + np.random.default_rng(0).uniform(-0.3, 0.3, len(values))
    dots = pd.DataFrame({"x": values, "y": y})
    look = {key: of_run[key] for key in ("color", "markerfacecolor") if key in of_run}
    MARKS["scatter"](panel, dots, {"x": "x", "y": "y", "size": 7}, look | {"alpha": 0.5}, 0)
    line = {"color": of_run["color"], "linewidth": 1.5}
    lines = dict.fromkeys(("boxprops", "whiskerprops", "capprops"), line)
    lines["medianprops"] = {"color": "black", "linewidth": 2}
    where = {"positions": [place], "widths": 0.6, "orientation": "horizontal"}
    panel.boxplot([values], whis=(0, 100), manage_ticks=False, **where, **lines)


def _ranked(panel: Axes, rows: pd.DataFrame, of_run: Style) -> None:
    """Draw the mean over seeds of the heads of every rank, with its standard deviation."""
    ranks = rows.groupby("rank")["relative"].agg(["mean", "std"]).fillna({"std": 0})
    low, high = ranks["mean"] - ranks["std"], ranks["mean"] + ranks["std"]
    table = ranks.assign(low=low.clip(lower=rows["relative"].min()), high=high).reset_index()
    layer = {"x": "rank", "y": "mean", "low": "low", "high": "high", "sparse": True}
    MARKS["line"](panel, table, layer, of_run, 0)


def attention_maps(frame: pd.DataFrame) -> Figure:
    """Draw the attention of one head of every model on its sentences."""
    maps, titles = [], []
    for (pair, *_, sentence), rows in frame.groupby([*RUN, "sentence"], sort=False):
        count = rows["place"].max()
        words = {"queries": rows["query"].iloc[::count], "keys": rows["key"].iloc[:count]}
        maps.append(words | {"weights": rows["weight"].to_numpy().reshape(-1, count)})
        titles.append(f"{pair}\n{rows['head'].iloc[0]}, sentence {sentence}")
    return draw_attention(maps, titles)


def draw_attention(maps: list[dict[str, Any]], titles: list[str]) -> Figure:
    """Draw a panel for every map: `queries` down, `keys` across, `weights` a row for every query.

    Scripts from right to left begin at the right. Raises ValueError for weights of another shape.
    """
    wide, high = ([max(len(item[side]), _FEWEST) for item in maps] for side in ("keys", "queries"))
    cell = min(_CELL, max(_LEAST, (style.PAGE - _WORDS) / max(wide)))
    size = (cell * max(wide) + _WORDS, cell * sum(high) + 1.6 * len(maps))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(maps), squeeze=False, height_ratios=high).flat
    for panel, words, title in zip(axes, maps, titles, strict=True):
        weights = np.array(words["weights"], dtype=float)
        expected = len(words["queries"]), len(words["keys"])
        if weights.shape != expected or not weights.size:
            raise ValueError(f"expected weights of {expected}, found {weights.shape}")
        image = panel.imshow(weights, cmap="Blues", vmin=0, vmax=1)
        for axis, side in ((panel.xaxis, "keys"), (panel.yaxis, "queries")):
            shown = [word if word.strip() else "␣" for word in words[side]]
            axis.set_ticks(range(len(shown)), shown, fontsize=8)
        panel.xaxis.tick_top()
        panel.tick_params(axis="x", rotation=90)
        if is_right_to_left(words["keys"]):
            panel.invert_xaxis()
        if is_right_to_left(words["queries"]):
            panel.yaxis.tick_right()
        panel.grid(visible=False)
        panel.set_title(title, loc="left", fontsize="small")
    style.colour_bar(figure, image, "attention weight")
    return figure


def is_right_to_left(texts: list[str]) -> bool:
    """Return whether most letters belong to scripts that are written from right to left."""
    kinds = [unicodedata.bidirectional(letter) for text in texts for letter in text]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")
