"""HeadMask's Figure 3, and what it lacks: importance of every head, by method."""

from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.figures import (
    SHORT,
    Drawn,
    colour_bar,
    explain_kinds,
    heat_panels,
    run_styles,
)
from headcount.findings.headmask.importance import describe_measured, of_heads, read_importance
from headcount.findings.results import KEYS, Results
from headcount.findings.setting import OVER_SEEDS, importance_unit

_TICKS = (0.125, 0.25, 0.5, 1, 2, 4, 8)


@exhibits.figure("headmask_fig3", needs=("importance",), beside="headmask_table5")
def fig3(results: Results) -> Drawn:
    """Figure 3: distribution of the importance of heads."""
    heads = distribution(results.read(read_importance, "importance"))
    caption = (
        "Distribution of the importance of heads, by training method: every head a dot (left), "
        "and heads by rank, relative to the mean head of their model (right). A flat line would "
        "be equal heads."
    )
    boxes = "Box and whiskers: quartiles and extremes."
    seeds = "Heads of all seeds together; lines are means over seeds, bands ± their deviation."
    several = (seeds, OVER_SEEDS) if heads["seed"].nunique() > 1 else ()
    drawing = draw_distribution(
        heads, list(heads["run"].unique()), importance_unit(results.ranking)
    )
    return Drawn(drawing, heads, caption, (boxes, *several, *describe_measured(results)))


@exhibits.figure("headmask_heads", needs=("importance",), beside="headmask_table6")
def heads(results: Results) -> Drawn:
    """Importance of every head."""
    table = distribution(results.read(read_importance, "importance"))
    caption = (
        "Importance of every head, relative to the mean head of its model; a row is a kind of "
        "attention and its layer, from 0."
    )
    notes = ("Grey: no such head.", explain_kinds(), *describe_measured(results))
    return Drawn(_draw_heads(table), table, caption, notes)


def distribution(importance: pd.DataFrame) -> pd.DataFrame:
    """Every head with its place in its model: rank (1 = most important) and relative importance.

    Columns: pair, run, seed, kind, layer, head, importance, relative (to the model's mean size of
    importance), rank.
    """
    heads = of_heads(importance).rename(columns={"value": "importance"})
    of_model = heads.groupby(KEYS, sort=False)["importance"]
    return heads.assign(
        relative=heads["importance"] / of_model.transform(lambda values: values.abs().mean()),
        rank=of_model.rank(ascending=False, method="first").astype(int),
    )


def draw_distribution(heads: pd.DataFrame, runs: list[str], unit: str) -> Figure:
    """Figure 3: a row per pair; left every head and the quartiles of each run, right the ranked.

    `heads` comes from `distribution`. Several seeds: their heads together at left; at right the
    mean of each rank, ± a standard deviation.
    """
    pairs = list(heads.groupby("pair", sort=False))
    height = 1.0 + max(2.6, 0.4 * len(runs)) * len(pairs)
    figure = Figure(figsize=(9, height), layout="constrained")
    grid = figure.subplots(len(pairs), 2, squeeze=False)
    colours = {run: style["color"] for run, style in run_styles(runs).items()}
    for (left, right), (pair, rows) in zip(grid, pairs, strict=True):
        for place, (run, colour) in enumerate(colours.items()):
            of_run = rows[rows["run"] == run]
            _heads_of(left, of_run["importance"].to_numpy(), place, colour)
            _ranked(right, of_run, colour)
        left.set_title(pair, loc="left")
        left.set_yticks(range(len(runs)), runs)
        for name in left.get_yticklabels():  # the legend of both panels
            name.set_color(colours[name.get_text()])
        left.invert_yaxis()
        left.grid(axis="y", visible=False)
        left.set_xlabel(f"importance ({unit})")
        right.axhline(1, color="black", linewidth=0.6)
        right.set_xlabel("rank (1: most important)")
        right.set_ylabel("importance ÷ mean importance")
        if (heads["importance"] > 0).all():  # not for importances with a sign
            left.set_xscale("log")
            right.set_yscale("log")
            for axis in (left.xaxis, right.yaxis):  # numbers as people write them
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.set_minor_formatter(NullFormatter())
    return figure


def _heads_of(panel: Axes, values: np.ndarray, place: int, colour: str) -> None:
    """Every head of one run as a dot, spread out evenly, over the box of their quartiles."""
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, len(values))
    panel.scatter(values, place + spread, s=7, color=colour, alpha=0.5, linewidths=0)
    box = {"color": colour, "linewidth": 1.5}
    drawn = panel.boxplot(
        [values], positions=[place], orientation="horizontal", widths=0.6, showfliers=False,
        whis=(0, 100), boxprops=box, whiskerprops=box, medianprops=box, capprops=box,
    )  # fmt: skip
    drawn["medians"][0].set(color="black", linewidth=2)


def _ranked(panel: Axes, rows: pd.DataFrame, colour: str) -> None:
    by_rank = rows.groupby("rank")["relative"]
    mean, deviation = by_rank.mean(), by_rank.std().fillna(0)
    panel.plot(mean.index, mean, color=colour, linewidth=1.6)
    low, high = (mean - deviation).clip(lower=rows["relative"].min()), mean + deviation
    panel.fill_between(mean.index, low, high, color=colour, alpha=0.15, linewidth=0)


def _draw_heads(heads: pd.DataFrame) -> Figure:
    """A heat map per model: layers of each kind by heads; see `heat_panels`.

    Colours show importance relative to the model's mean head, each step of the scale a doubling.
    """
    present = set(zip(heads["kind"], heads["layer"], strict=True))
    rows = sorted(present, key=lambda row: (KINDS.index(row[0]), row[1]))
    figure, models = heat_panels(heads, 2.6, 1.0 + 0.2 * len(rows))
    for panel, of_model in models:
        image = _heat(panel, of_model, rows)
    bar = colour_bar(figure, image, "importance ÷ mean importance", extend="both")
    bar.set_ticks(_TICKS, labels=[f"{tick:g}" for tick in _TICKS])
    bar.minorticks_off()
    return figure


def _heat(panel: Axes, heads: pd.DataFrame, rows: list[tuple[str, int]]) -> AxesImage:
    """One model, its (kind, layer) down; places where a layer has no head stay grey."""
    cells = np.full((len(rows), int(heads["head"].max()) + 1), np.nan)
    for head in heads.itertuples():
        cells[rows.index((head.kind, head.layer)), head.head] = max(head.relative, _TICKS[0] / 2)
    panel.set_facecolor("#BBBBBB")
    scale = LogNorm(_TICKS[0], _TICKS[-1])
    image = panel.imshow(cells, cmap="viridis", norm=scale, aspect="auto")
    panel.set_xticks(range(cells.shape[1]), range(cells.shape[1]), fontsize=7)
    labels = [f"{SHORT[kind]} {layer}" for kind, layer in rows]
    panel.set_yticks(range(len(rows)), labels, fontsize=7)
    panel.set_xlabel("head", fontsize="small")
    for place, (above, below) in enumerate(pairwise(rows)):
        if above[0] != below[0]:
            panel.axhline(place + 0.5, color="white", linewidth=2)
    return image
