"""Voita's Figures 1 and 2: relevance, confidence and function of encoder heads, layer by layer."""

from collections.abc import Collection

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from headcount.base.settings.training_runs import BASELINE
from headcount.findings import exhibits
from headcount.findings.figures import PAGE, SMALLEST, Drawn, draw_legend, with_minus
from headcount.findings.masked_training import collapse_notes, collapsed_in_training
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, KEYS, Results
from headcount.findings.scores import Key
from headcount.findings.voita_roles.labels import label_classes
from headcount.findings.voita_roles.measured import all_roles, describe_roles

MAP_COLUMNS = [*KEYS, "layer", "rank", "head", "relevance", "confidence", "function", "source"]
CLASSES = {
    "positional": "#CC79A7",
    "syntactic": "#009E73",
    "rare": "#E69F00",
    "several": "#56B4E9",
    "none": "#E4E4E4",
}
_HIGHEST = {"confidence": 1.0}  # where a scale of colours ends
_TITLE = {"loc": "left", "fontsize": "small"}
_CELL, _BESIDE = 0.29, 0.7  # inches of a map: of a cell, and of what stands beside all
_SORTED = (
    "Rows of a map are encoder layers, the first at the bottom; in each, heads are sorted by "
    "relevance."
)
_MAPS = (
    "Colours begin at 0: relevance ends at the largest of all maps, confidence at 1. "
    "Function: relative position, relation (v: verb, s: subject, o: object, n: noun, a: "
    "adjective, adv: adverb; v→o looks from the verb to its object), or rare words; at most two "
    "are written. Several: of more than one of these kinds."
)


@exhibits.figure("voita_fig1", needs=("roles",), uses=("pruned_heads",), beside="voita_roles")
def fig1(results: Results) -> Drawn:
    """Figure 1: heads of the baseline."""
    roles = all_roles(results)
    points = map_points(roles[roles["run"] == BASE], ["opensubtitles.en-ru"])
    caption = (
        "Relevance, confidence and function of the encoder's heads in models trained plainly. "
        f"{_SORTED}"
    )
    paper = f"Below: {voita.SOURCE}, Figure 1."
    notes = (_MAPS, paper, voita.READ_OFF, *describe_roles(results))
    return Drawn(draw_maps(points, ["relevance", "confidence"], ()), points, caption, notes)


@exhibits.figure(
    "voita_fig2",
    needs=("roles", "masks"),
    uses=("pruned_heads", "curves"),
    beside="voita_roles",
)
def fig2(results: Results) -> Drawn:
    """Figure 2: heads of models trained otherwise."""
    roles = all_roles(results)
    masked = [name for name, run in results.runs.items() if run.method != BASELINE.method]
    points = map_points(roles[roles["run"].isin(masked)], ["wmt.en-de", "wmt.en-fr"])
    caption = (
        "Relevance and function of the encoder's heads in models trained with masked heads. "
        f"{_SORTED}"
    )
    paper = f"Below: {voita.SOURCE}, Figure 2: plainly trained models of two more pairs, WMT."
    collapsed = collapsed_in_training(results)
    marked = collapse_notes(collapsed)
    notes = (_MAPS, paper, voita.READ_OFF, *marked, *describe_roles(results))
    return Drawn(draw_maps(points, ["relevance"], collapsed), points, caption, notes)


def function_class(function: str) -> str:
    """Which of `CLASSES` the labels of a head make it."""
    found = label_classes(function)
    return found.pop() if len(found) == 1 else "several" if found else "none"


def map_points(roles: pd.DataFrame, paper: list[str]) -> pd.DataFrame:
    """A head a row, ours and the paper's: columns of `MAP_COLUMNS`.

    `roles` comes from `all_roles`; `paper` names its pairs. Ranks count from 1; the paper tells
    no heads, and no confidence outside Figure 1.
    """
    theirs = voita.ranked_heads()
    theirs["layer"] -= 1
    ours = roles.reindex(columns=MAP_COLUMNS)
    return with_printed(ours, theirs[theirs["pair"].isin(paper)])


def draw_maps(points: pd.DataFrame, columns: list[str], collapsed: Collection[Key]) -> Figure:
    """Panels for each model: a heat map for each of `columns`, then the functions.

    They stand abreast as far as a page has room for cells that can be read. A measure has one scale
    of colours in all maps. Titles name the models that `collapsed`.
    """
    models = list(points.groupby([*KEYS, "source"], sort=False))
    ranks, names = int(points["rank"].max()), [*columns, "function"]
    abreast = min(len(names), max(1, int(PAGE / (_CELL * ranks + _BESIDE))))
    rows = -(-len(names) // abreast)  # of one model
    each = [0.9 + 0.34 * len(heads["layer"].unique()) for _, heads in models]
    heights = [height for height in each for _ in range(rows)]
    size = (max(min(PAGE, 4.6 * abreast), 5.5), sum(heights) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    ratios = {"height_ratios": heights}
    grid = figure.subplots(len(heights), abreast, squeeze=False, gridspec_kw=ratios)
    for place, (key, heads) in enumerate(models):
        found = list(grid[place * rows : (place + 1) * rows].flat)
        for spare in found[len(names) :]:
            spare.remove()
        found[0].set_title(_title(key, collapsed), **_TITLE)
        for panel, name in zip(found, names, strict=False):
            _map(panel, heads, name, points)
    patches = {name: Patch(color=colour) for name, colour in CLASSES.items()}
    draw_legend(figure, patches, "lower")
    return figure


def _title(key: tuple, collapsed: Collection[Key]) -> str:
    pair, run, seed, source = key
    failed = ": collapsed" if (pair, run, seed) in collapsed else ""
    return f"{pair}, {run}, seed {seed}{failed}" if source == "ours" else f"{pair} (paper)"


def _map(panel: Axes, heads: pd.DataFrame, name: str, points: pd.DataFrame) -> None:
    """One map of a model, unless nothing is known for it; `points` have the scale of all."""
    if name != "function" and (heads[name] == "").any():
        panel.remove()
        return
    panel.set_title(f"{panel.get_title(loc='left')}\n{name}", **_TITLE)
    if name == "function":
        _functions(panel, heads)
        return
    high = _HIGHEST.get(name) or float(pd.to_numeric(points[name]).max())
    image = _heat(panel, heads, name, high)
    bar = panel.figure.colorbar(image, ax=panel, fraction=0.05, pad=0.02)
    bar.ax.tick_params(labelsize=SMALLEST)


def _cells(heads: pd.DataFrame, name: str) -> pd.DataFrame:
    """One column of a model by layer, the first at the bottom as in the paper, and rank."""
    return heads.pivot(index="layer", columns="rank", values=name).sort_index(ascending=False)


def _axes(panel: Axes, cells: pd.DataFrame) -> None:
    panel.set_xticks(range(cells.shape[1]), range(1, cells.shape[1] + 1), fontsize=SMALLEST)
    panel.set_yticks(range(len(cells)), cells.index, fontsize=SMALLEST)
    panel.set_xlabel("rank by relevance", fontsize="small")
    panel.set_ylabel("layer", fontsize="small")
    panel.grid(visible=False)


def _heat(panel: Axes, heads: pd.DataFrame, name: str, high: float) -> AxesImage:
    table = _cells(heads, name)
    cells = table.to_numpy(float)
    image = panel.imshow(cells, cmap="viridis", aspect="auto", vmin=0, vmax=high)
    for (layer, rank), value in np.ndenumerate(cells):
        if not np.isnan(value):
            colour = "black" if value > high / 2 else "white"
            _write(panel, (rank, layer), f"{value:.2f}".removeprefix("0"), colour)
    _axes(panel, table)
    return image


def _write(panel: Axes, place: tuple[int, int], text: str, colour: str = "black") -> None:
    """Text in the middle of a cell, which the layout need not make room for."""
    style = {"ha": "center", "va": "center", "fontsize": SMALLEST, "color": colour}
    panel.text(*place, text, **style).set_in_layout(False)


def _functions(panel: Axes, heads: pd.DataFrame) -> None:
    table = _cells(heads, "function").fillna("")
    labels = table.to_numpy()
    names = list(CLASSES)
    numbers = np.vectorize(lambda label: names.index(function_class(label)))(labels)
    shades = ListedColormap(list(CLASSES.values()))
    panel.imshow(numbers, cmap=shades, vmin=0, vmax=len(names) - 1, aspect="auto")
    for (layer, rank), label in np.ndenumerate(labels):
        parts = label.split(", ")
        text = "\n".join(parts[:2]) + (" …" if len(parts) > 2 else "")
        _write(panel, (rank, layer), with_minus(text))
    for edge in range(1, numbers.shape[1]):
        panel.axvline(edge - 0.5, color="white", linewidth=1)
    for edge in range(1, numbers.shape[0]):
        panel.axhline(edge - 0.5, color="white", linewidth=1)
    _axes(panel, table)
