"""Accuracy against speed and size of models whose heads were removed."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headcount.findings.panels import colour_bar

_MARKERS = {
    "": ("*", "not pruned"),
    "gates": ("o", "gates"),
    "ranked": ("s", "ranked"),
    "drawn": ("^", "drawn"),
    "scratch": ("D", "scratch"),
}
_SIZES = (("parameters", 1e6, "parameters (millions)"), ("file_bytes", 1e6, "file (MB)"))


def draw_speed(table: pd.DataFrame) -> Figure:
    """BLEU by milliseconds per sentence, and by size; see `speed_with_bleu`.

    For each pair a row per phase: a panel per batch size, then one for parameters or bytes. A
    point is a model of one seed, its bar reaches from the fastest repeat to the slowest; markers
    are ways to prune, colours the heads left.
    """
    pairs = list(table.groupby("pair", sort=False))
    phases, sizes = table["phase"].unique(), sorted(table["batch_size"].unique())
    shape = (len(pairs) * len(phases), len(sizes) + 1)
    size = (max(2.7 * shape[1] + 1.2, 6.5), 2.6 * shape[0] + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(*shape, squeeze=False, sharey=len(pairs) == 1)
    scale = Normalize(0, table["heads_left"].max())
    lines = iter(grid)
    for pair, of_pair in pairs:
        for place, phase in enumerate(phases):
            line = next(lines)
            for panel, batch in zip(line, sizes, strict=False):
                chosen = (of_pair["phase"] == phase) & (of_pair["batch_size"] == batch)
                rows = of_pair[chosen]
                _timed(panel, rows, scale)
                panel.set_title(f"{phase}, batch {batch}", loc="left", fontsize="small")
                panel.set_xlabel("ms per sentence", fontsize="small")
            column, unit, words = _SIZES[place % len(_SIZES)]
            one = of_pair.drop_duplicates(["run", "seed"])
            points = _points(line[-1], one, one[column] / unit, scale)
            line[-1].set_xlabel(words, fontsize="small")
            line[-1].set_title("size", loc="left", fontsize="small")
            test = of_pair["test_set"].iloc[0]
            line[0].set_ylabel(f"BLEU, {pair}\n{test}", fontsize="small")
    for panel in grid.flat:
        panel.tick_params(labelsize="small")
    colour_bar(figure, points, "heads left")
    _legend(figure, table)
    return figure


def _timed(panel: Axes, rows: pd.DataFrame, scale: Normalize) -> None:
    ends = [rows["milliseconds"] - rows["low"], rows["high"] - rows["milliseconds"]]
    style = {"fmt": "none", "ecolor": "#6E6E6E", "elinewidth": 0.8, "zorder": 1}
    panel.errorbar(rows["milliseconds"], rows["bleu"], xerr=ends, **style)
    _points(panel, rows, rows["milliseconds"], scale)


def _points(panel: Axes, rows: pd.DataFrame, across: pd.Series, scale: Normalize) -> PathCollection:
    for how, (marker, _) in _MARKERS.items():
        of_way = rows["how"] == how
        style = {"c": rows.loc[of_way, "heads_left"], "cmap": "viridis", "norm": scale}
        style |= {"s": 90 if marker == "*" else 32, "edgecolors": "black", "linewidths": 0.6}
        found = rows[of_way]
        points = panel.scatter(across[of_way], found["bleu"], marker=marker, zorder=2, **style)
    return points


def _legend(figure: Figure, table: pd.DataFrame) -> None:
    present = set(table["how"])
    plain = {"linestyle": "", "markerfacecolor": "white", "markeredgecolor": "black"}
    keys = [
        Line2D([], [], marker=marker, label=words, markersize=9 if marker == "*" else 6, **plain)
        for how, (marker, words) in _MARKERS.items()
        if how in present
    ]
    figure.legend(
        handles=keys, loc="outside upper center", ncols=len(keys), frameon=False, fontsize="small"
    )
