"""Attention maps: which key each query looks at, as heat maps with words along both sides."""

import unicodedata
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headcount.base.errors import UserError

_INCH = 0.27  # of a cell
_FEWEST = 5  # cells, so that titles have room


def is_right_to_left(texts: list[str]) -> bool:
    """Whether most letters of the texts belong to scripts written from right to left."""
    kinds = [unicodedata.bidirectional(character) for text in texts for character in text]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


def draw_attention(maps: list[dict[str, Any]], titles: list[str]) -> Figure:
    """A panel for each map, abreast; queries down, keys across in the direction they are read.

    A map has `queries`, `keys` and `weights`, one row for each query. Words are set by a layout
    engine that joins letters and orders scripts from right to left; for those the first key is at
    the right and queries are named at the right. Raises UserError for weights of another shape.
    """
    for found in maps:
        check_map(found)
    widths = [max(len(found["keys"]), _FEWEST) for found in maps]
    height = max(max(len(found["queries"]) for found in maps), _FEWEST)
    size = (_INCH * sum(widths) + 1.3 * len(maps), _INCH * height + 1.6)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(maps), squeeze=False, gridspec_kw={"width_ratios": widths})
    for panel, found, title in zip(grid[0], maps, titles, strict=True):
        _draw(panel, found)
        panel.set_title(title, loc="left", fontsize="small")
    return figure


def check_map(found: dict[str, Any]) -> None:
    """Raise UserError unless a map has one weight for each query and key."""
    try:
        shape = np.array(found["weights"], dtype=float).shape
        expected = (len(found["queries"]), len(found["keys"]))
    except (KeyError, TypeError, ValueError) as fault:
        raise UserError(
            f"attention map: expected queries, keys and weights, found a fault: {fault}; make the "
            "file again with scripts/attention.py"
        ) from None
    if shape != expected or 0 in shape:
        raise UserError(
            f"attention map: expected weights for {expected[0]} queries × {expected[1]} keys, "
            f"found {list(shape)}; make the file again with scripts/attention.py"
        )


def _draw(panel: Axes, found: dict[str, Any]) -> None:
    weights = np.array(found["weights"])
    panel.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    keys, queries = (list(map(plain, found[side])) for side in ("keys", "queries"))
    panel.set_xticks(range(len(keys)), keys, rotation=90, fontsize=8)
    panel.set_yticks(range(len(queries)), queries, fontsize=8)
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.grid(visible=False)
    for spine in panel.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.5)
    if is_right_to_left(found["keys"]):
        panel.invert_xaxis()
    if is_right_to_left(found["queries"]):
        panel.yaxis.tick_right()


def plain(text: str) -> str:
    """A word as it is drawn: dollar signs are no formulas, invisible words are shown."""
    shown = text if text.strip() else "␣"
    return shown.replace("$", r"\$")
