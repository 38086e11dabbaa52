"""Voita's Figures 1 and 2: relevance, confidence and function of encoder heads, layer by layer."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from headcount.base.settings.runs import BASELINE
from headcount.findings import exhibits
from headcount.findings.figures import Drawn
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, KEYS, Results
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
_LIMITS = {"relevance": None, "confidence": (0, 1)}
_TITLE = {"loc": "left", "fontsize": "small"}
_SORTED = (
    "Rows of a map are encoder layers, the first at the bottom; in each, heads are sorted by "
    "relevance."
)
_MAPS = (
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
    return Drawn(draw_maps(points, ["relevance", "confidence"]), points, caption, notes)


@exhibits.figure("voita_fig2", needs=("roles",), uses=("pruned_heads",), beside="voita_roles")
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
    notes = (_MAPS, paper, voita.READ_OFF, *describe_roles(results))
    return Drawn(draw_maps(points, ["relevance"]), points, caption, notes)


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


def draw_maps(points: pd.DataFrame, columns: list[str]) -> Figure:
    """A row of panels for each model: a heat map for each of `columns`, then the functions."""
    models = list(points.groupby([*KEYS, "source"], sort=False))
    heights = [0.9 + 0.34 * len(heads["layer"].unique()) for _, heads in models]
    width = max(2.6, 0.42 * points["rank"].max() + 0.9)
    size = ((len(columns) + 1) * width + 0.6, sum(heights) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(
        len(models), len(columns) + 1, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for ((pair, run, seed, source), heads), line in zip(models, grid, strict=True):
        title = f"{pair}, {run}, seed {seed}" if source == "ours" else f"{pair} (paper)"
        for place, (panel, name) in enumerate(zip(line, columns, strict=False)):
            if (heads[name] == "").any():
                panel.remove()
                continue
            image = _heat(panel, heads, name)
            figure.colorbar(image, ax=panel, fraction=0.05, pad=0.02).ax.tick_params(labelsize=7)
            panel.set_title(f"{title}\n{name}" if place == 0 else f"\n{name}", **_TITLE)
        _functions(line[-1], heads)
        line[-1].set_title("\nfunction", **_TITLE)
    patches = [Patch(color=colour, label=name) for name, colour in CLASSES.items()]
    below = {"loc": "outside lower center", "ncols": len(CLASSES), "fontsize": "small"}
    figure.legend(handles=patches, frameon=False, **below)
    return figure


def _cells(heads: pd.DataFrame, name: str) -> pd.DataFrame:
    """One column of a model by layer, the first at the bottom as in the paper, and rank."""
    return heads.pivot(index="layer", columns="rank", values=name).sort_index(ascending=False)


def _axes(panel: Axes, cells: pd.DataFrame) -> None:
    panel.set_xticks(range(cells.shape[1]), range(1, cells.shape[1] + 1), fontsize=7)
    layers = [f"layer {layer}" for layer in cells.index]
    panel.set_yticks(range(len(layers)), layers, fontsize=7)
    panel.set_xlabel("rank by relevance", fontsize=7)
    panel.grid(visible=False)


def _heat(panel: Axes, heads: pd.DataFrame, name: str) -> AxesImage:
    table = _cells(heads, name)
    cells = table.to_numpy(float)
    low, high = _LIMITS[name] or (np.nanmin(cells), np.nanmax(cells))
    image = panel.imshow(cells, cmap="viridis", aspect="auto", vmin=low, vmax=high)
    for (layer, rank), value in np.ndenumerate(cells):
        if not np.isnan(value):
            colour = "black" if value > (low + high) / 2 else "white"
            _write(panel, (rank, layer), f"{value:.2f}".removeprefix("0"), 6, colour)
    _axes(panel, table)
    return image


def _write(
    panel: Axes, place: tuple[int, int], text: str, size: int, colour: str = "black"
) -> None:
    """Text in the middle of a cell, which the layout need not make room for."""
    found = panel.text(*place, text, ha="center", va="center", fontsize=size, color=colour)
    found.set_in_layout(False)


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
        _write(panel, (rank, layer), text, 5)
    for edge in range(1, numbers.shape[1]):
        panel.axvline(edge - 0.5, color="white", linewidth=1)
    for edge in range(1, numbers.shape[0]):
        panel.axhline(edge - 0.5, color="white", linewidth=1)
    _axes(panel, table)
