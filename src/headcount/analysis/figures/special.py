"""Attention maps, which a declaration cannot describe."""

import unicodedata
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from headcount.analysis.figures import style
from headcount.analysis.frames import RUN

_CELL, _LEAST = 0.27, 0.15  # inches of a cell of an attention map, at most and at least
_WORDS = 1.3  # inches of words beside an attention map
_FEWEST = 5  # cells, so that titles have room


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
    """Draw a panel for every map: `queries` down, `keys` across, a row of `weights` for a query."""
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
