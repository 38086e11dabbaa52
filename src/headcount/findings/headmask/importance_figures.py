"""HeadMask's Figure 3, and what it lacks: importance of every head, by method."""

from collections.abc import Collection
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.figures import (
    Drawn,
    colour_bar,
    draw_legend,
    heat_panels,
    is_first,
    number_heads,
    panels,
    run_groups,
    run_styles,
)
from headcount.findings.headmask.collapse import collapsed_models
from headcount.findings.headmask.importance import describe_measured, of_heads, read_importance
from headcount.findings.kinds import SHORT, explain_kinds
from headcount.findings.masked_training import collapse_notes, collapse_words
from headcount.findings.results import KEYS, Results
from headcount.findings.scores import Key
from headcount.findings.setting import OVER_SEEDS, importance_unit, seeds_of, warn_of_unlike_seeds

_LARGEST = 8  # importance ÷ mean importance that a colour can show


@exhibits.figure(
    "headmask_fig3",
    needs=("importance", "masks"),
    uses=("masking", "curves"),
    beside="headmask_table5",
)
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
    collapsed = collapse_words(collapsed_models(results), heads)
    styles = run_styles(list(heads["run"].unique()), collapsed)
    drawing = draw_distribution(heads, styles, importance_unit(results.ranking))
    notes = (boxes, *several, *collapse_notes(collapsed), *describe_measured(results))
    return Drawn(drawing, heads, caption, notes, warn_of_unlike_seeds(seeds_of(heads)))


@exhibits.figure(
    "headmask_heads",
    needs=("importance",),
    uses=("masks", "masking", "curves"),
    beside="headmask_table6",
)
def heads(results: Results) -> Drawn:
    """Importance of every head."""
    table = distribution(results.read(read_importance, "importance"))
    caption = (
        "Importance of every head, relative to the mean head of its model; a row is a kind of "
        "attention and its layer, from 0."
    )
    collapsed = collapsed_models(results)
    words = ("Grey: no such head.", explain_kinds(), *collapse_notes(collapsed))
    notes = (*words, *describe_measured(results))
    return Drawn(_draw_heads(table, collapsed), table, caption, notes)


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


def draw_distribution(heads: pd.DataFrame, styles: dict[str, dict[str, str]], unit: str) -> Figure:
    """Figure 3: a row per pair; left every head and the quartiles of each run, right the ranked.

    `heads` comes from `distribution`, `styles` from `run_styles`. Several seeds: their heads
    together at left; at right the mean of each rank, ± a standard deviation. More runs than a panel
    has room for are parted, the first in each part.
    """
    rows = [
        (pair, of_pair[of_pair["run"].isin(group)], {run: styles[run] for run in group})
        for pair, of_pair in heads.groupby("pair", sort=False)
        for group in run_groups(list(styles))
    ]
    height = max(2.6, 0.45 * max(len(shown) for *_, shown in rows))
    figure, axes = panels(2 * len(rows), 2, 4.5, height)
    signed = (heads["importance"] <= 0).any()
    for left, right, (pair, found, shown) in zip(axes[::2], axes[1::2], rows, strict=True):
        for place, (run, style) in enumerate(shown.items()):
            of_run = found[found["run"] == run]
            _heads_of(left, of_run["importance"].to_numpy(), place, style)
            _ranked(right, of_run, style)
        left.set_title(pair, loc="left")
        left.set_yticks(range(len(shown)), [style["label"] for style in shown.values()])
        _finish(left, right, unit, signed)
    keys = [Line2D([], [], **style) for style in styles.values()]
    draw_legend(figure, {key.get_label(): key for key in keys})
    return figure


def _finish(left: Axes, right: Axes, unit: str, signed: bool) -> None:
    """Axes of the two panels of a row: logarithmic, unless importances have a sign."""
    left.invert_yaxis()
    left.grid(axis="y", visible=False)
    left.set_xlabel(f"importance ({unit})")
    right.axhline(1, color="black", linewidth=0.6)
    right.set_xlabel("rank (1: most important)")
    right.set_ylabel("importance ÷ mean importance")
    if signed:
        return
    left.set_xscale("log")
    right.set_yscale("log")
    for axis in (left.xaxis, right.yaxis):  # numbers as people write them
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _heads_of(panel: Axes, values: np.ndarray, place: int, style: dict[str, str]) -> None:
    """Every head of one run as a dot, spread out evenly, over the box of their quartiles."""
    colour = style["color"]
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, len(values))
    hollow = {"facecolors": "none", "linewidths": 0.6, "edgecolors": colour}
    full = {"color": colour, "alpha": 0.5, "linewidths": 0}
    dots = hollow if "markerfacecolor" in style else full
    panel.scatter(values, place + spread, s=7, **dots)
    box = {"color": colour, "linewidth": 1.5}
    drawn = panel.boxplot(
        [values], positions=[place], orientation="horizontal", widths=0.6, showfliers=False,
        whis=(0, 100), boxprops=box, whiskerprops=box, medianprops=box, capprops=box,
    )  # fmt: skip
    drawn["medians"][0].set(color="black", linewidth=2)


def _ranked(panel: Axes, rows: pd.DataFrame, style: dict[str, str]) -> None:
    by_rank = rows.groupby("rank")["relative"]
    mean, deviation = by_rank.mean(), by_rank.std().fillna(0)
    often = max(1, len(mean) // 8)
    panel.plot(mean.index, mean, linewidth=1.6, markersize=4, markevery=often, **style)
    low, high = (mean - deviation).clip(lower=rows["relative"].min()), mean + deviation
    panel.fill_between(mean.index, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _draw_heads(heads: pd.DataFrame, collapsed: Collection[Key]) -> Figure:
    """A heat map per model: layers of each kind by heads; see `heat_panels`.

    Colours show importance relative to the model's mean head, each step of the scale a doubling,
    as far to either side of the mean.
    """
    present = set(zip(heads["kind"], heads["layer"], strict=True))
    rows = sorted(present, key=lambda row: (KINDS.index(row[0]), row[1]))
    largest = 2 ** np.ceil(np.log2(np.clip(heads["relative"].max(), 2, _LARGEST)))
    scale = LogNorm(1 / largest, largest)
    figure, models = heat_panels(heads, 2.6, 1.0 + 0.2 * len(rows), collapsed)
    for panel, of_model in models:
        image = _heat(panel, of_model, rows, scale)
    bar = colour_bar(figure, image, "importance ÷ mean importance", extend="both")
    ticks = 2.0 ** np.arange(-np.log2(largest), np.log2(largest) + 1)
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.minorticks_off()
    return figure


def _heat(
    panel: Axes, heads: pd.DataFrame, rows: list[tuple[str, int]], scale: LogNorm
) -> AxesImage:
    """One model, its (kind, layer) down; places where a layer has no head stay grey."""
    cells = np.full((len(rows), int(heads["head"].max()) + 1), np.nan)
    for head in heads.itertuples():
        # A logarithm has no place for importances of 0 and below.
        cells[rows.index((head.kind, head.layer)), head.head] = max(head.relative, scale.vmin / 2)
    panel.set_facecolor("#BBBBBB")
    image = panel.imshow(cells, cmap="PuOr_r", norm=scale, aspect="auto")
    number_heads(panel, cells.shape[1])
    labels = [f"{SHORT[kind]} {layer}" for kind, layer in rows]
    panel.set_yticks(range(len(rows)), labels if is_first(panel) else [])
    panel.tick_params(labelsize="small")
    panel.set_xlabel("head", fontsize="small")
    for place, (above, below) in enumerate(pairwise(rows)):
        if above[0] != below[0]:
            panel.axhline(place + 0.5, color="black", linewidth=1.2)
    return image
