"""Attention maps: which key each query looks at, as heat maps with words along both sides."""

import json
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.data.lines import clean_lines
from headcount.findings.figures import PAGE, colour_bar, save_drawing, use_style

ENDINGS = (".svg", ".pdf", ".png")
_INCH, _LEAST = 0.27, 0.15  # of a cell, at most and at least
_BESIDE = 1.3  # inches of words at the side of a map
_FEWEST = 5  # cells, so that titles have room


def is_right_to_left(texts: list[str]) -> bool:
    """Whether most letters of the texts belong to scripts written from right to left."""
    kinds = [unicodedata.bidirectional(character) for text in texts for character in text]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


def draw_attention(maps: list[dict[str, Any]], titles: list[str]) -> Figure:
    """A panel for each map, abreast if a page has room; queries down, keys across as they are read.

    A map has `queries`, `keys` and `weights`, one row for each query. Words are set by a layout
    engine that joins letters and orders scripts from right to left; for those the first key is at
    the right and queries are named at the right. Raises UserError for weights of another shape.
    """
    for found in maps:
        check_map(found)
    figure, axes = _panels(maps)
    for panel, found, title in zip(axes, maps, titles, strict=True):
        image = _draw(panel, found)
        panel.set_title(title, loc="left", fontsize="small")
    colour_bar(figure, image, "attention weight")
    return figure


def _panels(maps: list[dict[str, Any]]) -> tuple[Figure, list[Axes]]:
    """Axes abreast where a page has room for cells of a readable size, else one below the other."""
    widths, heights = (
        [max(len(found[side]), _FEWEST) for found in maps] for side in ("keys", "queries")
    )
    abreast = sum(widths) * _LEAST + len(maps) * _BESIDE <= PAGE
    columns = len(maps) if abreast else 1
    across, down = (sum(widths), max(heights)) if abreast else (max(widths), sum(heights))
    cell = min(_INCH, max(_LEAST, (PAGE - columns * _BESIDE) / across))
    rows = len(maps) // columns
    size = (cell * across + columns * _BESIDE, cell * down + 1.6 * rows)
    ratios = {"width_ratios" if abreast else "height_ratios": widths if abreast else heights}
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, gridspec_kw=ratios)
    return figure, list(grid.flat)


def read_sentences(path: Path) -> list[dict[str, Any]]:
    """A model's sentences.jsonl: subwords of both sides and weights by head, see heads/roles.py."""
    return [json.loads(line) for line in clean_lines(path)]


def read_maps(path: Path, head: Head) -> list[dict[str, Any]]:
    """The maps of one head, one for each sentence, from a model's sentences.jsonl."""
    return [_map_of(sentence, head) for sentence in read_sentences(path)]


def _map_of(sentence: dict[str, Any], head: Head) -> dict[str, Any]:
    queries = sentence["source" if head.kind == "enc_self" else "target"]
    keys = sentence["target" if head.kind == "dec_self" else "source"]
    return {"queries": queries, "keys": keys, "weights": sentence["weights"][head.name()]}


def write_maps(weights: Path, title: str, out: Path) -> None:
    """Draw all maps of a file that scripts/attention.py wrote, into .svg, .pdf or .png.

    `title` stands above the first map, by default the head. Raises UserError for another ending, a
    file of another kind, and letters that no installed font has.
    """
    if out.suffix not in ENDINGS:
        raise UserError(f"{out}: expected a name that ends in {', '.join(ENDINGS)}")
    try:
        found = read_json(weights)
        maps, head = found["maps"], Head(**found["head"])
    except (ValueError, KeyError, TypeError) as fault:
        raise UserError(
            f"{weights}: expected a file of scripts/attention.py, found a fault: {fault}"
        ) from None
    use_style()
    first = title or f"{head.label()}, by {found['level']}"
    drawing = draw_attention(maps, [first, *[""] * (len(maps) - 1)])
    with warnings.catch_warnings():
        # In SVG text stays text, and the reader's fonts set it.
        action = "ignore" if out.suffix == ".svg" else "error"
        warnings.filterwarnings(action, "Glyph .* missing from font")
        try:
            save_drawing(drawing, out, "tight")
        except UserWarning as fault:
            raise UserError(
                f"{fault}; install a font that has it and name it first in matplotlib's "
                "font.family (a matplotlibrc file), or draw an .svg, which leaves fonts to the "
                "reader"
            ) from None


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


def _draw(panel: Axes, found: dict[str, Any]) -> AxesImage:
    weights = np.array(found["weights"])
    image = panel.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    keys, queries = (list(map(_shown, found[side])) for side in ("keys", "queries"))
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
    return image


def _shown(word: str) -> str:
    """A word as it is drawn: an invisible one is shown."""
    return word if word.strip() else "␣"
