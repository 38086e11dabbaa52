"""Scores as more and more heads are pruned: by order, and by kind."""

from collections.abc import Mapping, Sequence
from math import nan

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.figures import (
    COLOURS,
    GREY,
    Drawn,
    legend_above,
    panels,
    start_at_zero,
    title_words,
)
from headcount.findings.kinds import WORDS
from headcount.findings.michel.measured import BLEU, Metric, describe_ranked
from headcount.findings.michel.pruning import LOSS, measured_points, printed_points
from headcount.findings.published import michel
from headcount.findings.results import KEYS, Results
from headcount.findings.setting import of_one_training

Styles = Mapping[str, tuple[str, str, str, str]]
"""By order: words with {score}, colour, line and mark."""

ORDERS: Styles = {
    "importance": ("importance", COLOURS[0], "-", "o"),
    "importance_raw": ("importance, not normalised", COLOURS[2], "-.", "^"),
    "single": ("{score} without the head alone", COLOURS[1], "--", "s"),
}
_SCALED = ["bleu", "delta", "delta_low", "delta_high"]
PRINTED = f"The paper's curves: {michel.SOURCE}, figure"
"""What a note says of the paper's curves, up to the number of its figure."""

_BANDS = (
    "Bands: bootstrap, 95 %, of the difference to all heads; hollow: a significant loss "
    f"(p < {LOSS})."
)
_KEPT = (
    "Shares are of the BLEU that the same model has with all heads on the same test set; the CSV "
    "has BLEU."
)


@exhibits.figure("michel_pruning", needs=("profiles", "ablated"), beside="michel_pruning")
def orders(results: Results) -> Drawn:
    """Figure 3: BLEU by order of pruning."""
    notes = (michel.BESIDE_OURS, f"{PRINTED} 3 and 6d.", *describe_ranked(results))
    return orders_figure([measured_points(results), _printed()], BLEU, notes)


@exhibits.figure("michel_kinds", needs=("profiles", "ablated"), beside="michel_areas")
def kinds(results: Results) -> Drawn:
    """Figure 4: BLEU by kind of attention."""
    points = measured_points(results)
    return Drawn(
        _draw_kinds([points, _printed()]),
        points[points["scope"] != "all"],
        "Share of BLEU that is kept as heads of one kind of attention are pruned, the other kinds "
        "whole, the least important first. The curve that falls first is of the kind that is "
        "needed most.",
        (
            _BANDS,
            _KEPT,
            of_one_training("test sentences"),
            michel.BESIDE_OURS,
            f"{PRINTED} 4.",
            *describe_ranked(results),
        ),
    )


def orders_figure(
    tables: Sequence[pd.DataFrame],
    metric: Metric,
    notes: tuple[str, ...],
    styles: Styles = ORDERS,
) -> Drawn:
    """Curves by order of pruning: ours, then those beside them; `notes` come last.

    A panel per model: the score, or the share of it that is kept, by share of heads pruned. A
    hollow mark has a significant loss. The star is one head in every layer and kind.
    """
    tasks = _tasks(tables, ["all"], metric)
    figure, axes = panels(len(tasks), width=4.4, height=3.4, share=metric.kept)
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        for order, (words, colour, line, marker) in styles.items():
            style = {"color": colour, "linestyle": line, "marker": marker}
            style["label"] = words.format(score=metric.word)
            _curve(panel, rows[rows["order"] == order], style)
        _random(panel, rows[rows["order"] == "random"])
        # An empty line that is not clipped would have its place in a corner of the figure.
        one = rows[rows["order"] == "one_per_layer"]
        mark = {"linestyle": "", "color": "black", "marker": "*", "markersize": 11, "zorder": 4}
        if len(one):
            mark |= {"label": "one head per layer", "clip_on": False}
            panel.plot(one["percent"], one["bleu"], **mark)
        finish(panel, task, "heads", metric.axis)
    start_at_zero(axes)
    legend_above(figure, axes)
    what = f"Share of {metric.word} that is kept" if metric.kept else metric.initial
    return Drawn(
        figure,
        tables[0],
        f"{what} as more and more heads of all kinds are pruned, nothing retrained, by the order "
        "in which they go. A curve that stays high longer is of a better order.",
        (_BANDS, *[_KEPT] * metric.kept, of_one_training(f"test {metric.counted}"), *notes),
    )


def _draw_kinds(tables: Sequence[pd.DataFrame]) -> Figure:
    """A panel per model, as `orders_figure`: BLEU as heads of one kind are pruned alone."""
    tasks = _tasks(tables, KINDS, BLEU)
    figure, axes = panels(len(tasks), width=4.4, height=3.4, share=True)
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        for kind, colour, marker in zip(KINDS, COLOURS, "os^", strict=False):
            style = {"color": colour, "marker": marker, "label": WORDS[kind]}
            _curve(panel, rows[rows["scope"] == kind], style)
        finish(panel, task, "the kind's heads", BLEU.axis)
    start_at_zero(axes)
    legend_above(figure, axes)
    return figure


def _printed() -> pd.DataFrame:
    """The paper's curves as `POINTS`, with `paper` as their run."""
    return printed_points().assign(run="paper").astype({"percent": float, "bleu": float})


def _tasks(
    tables: Sequence[pd.DataFrame], scopes: Sequence[str], metric: Metric
) -> list[tuple[tuple, pd.DataFrame]]:
    """The curves over heads of these scopes: a model's names and its rows each.

    Rows have the share of the score that is kept, percent, where the metric asks for it; the names
    then tell the score with all heads.
    """
    chosen = [table[table["scope"].isin(scopes)] for table in tables]
    found = [task for table in chosen for task in table.groupby([*KEYS, "test_set"], sort=False)]
    return [_kept(*task, metric) for task in found] if metric.kept else found


def _kept(task: tuple, rows: pd.DataFrame, metric: Metric) -> tuple[tuple, pd.DataFrame]:
    whole = float(rows.loc[rows["percent"] == 0, "bleu"].iloc[0])
    scaled = 100 * rows[_SCALED].apply(pd.to_numeric, errors="coerce") / (whole or nan)
    words = f"{metric.word} {whole:.2f} with all heads"
    if not whole:
        words += ", no share of it"
    named = ", ".join(filter(None, [task[-1], words]))
    return (*task[:-1], named), rows.assign(**scaled)


def _curve(panel: Axes, rows: pd.DataFrame, style: dict) -> None:
    """One order; hollow where the loss is significant, with intervals where there are any."""
    if rows.empty:
        return
    style = {"linewidth": 1.4, "markersize": 4.5, "clip_on": False} | style
    panel.plot(rows["percent"], rows["bleu"], **style)
    if (rows["source"] == "paper").all():
        return
    whole = rows["bleu"] - rows["delta"]
    low, high = (whole + rows["delta_low"]).clip(lower=0), whole + rows["delta_high"]
    panel.fill_between(rows["percent"], low, high, color=style["color"], alpha=0.15, linewidth=0)
    lost = rows[(rows["delta"] < 0) & (rows["p"] < LOSS)]
    if len(lost):
        hollow = {"linestyle": "", "markerfacecolor": "white", "label": None}
        panel.plot(lost["percent"], lost["bleu"], **style | hollow)


def _random(panel: Axes, rows: pd.DataFrame) -> None:
    """The mean over random orders, and their range."""
    if rows.empty:
        return
    by_step = rows.groupby("percent")["bleu"].agg(["mean", "min", "max"])
    panel.plot(by_step.index, by_step["mean"], ":", color=GREY, label="random (range of draws)")
    band = {"color": GREY, "alpha": 0.2, "linewidth": 0}
    panel.fill_between(by_step.index, by_step["min"], by_step["max"], **band)


def finish(panel: Axes, task: tuple, pruned: str, axis: str) -> None:
    """Title and axes of a panel, `pruned` in words; `task`: pair, run, seed and test set."""
    pair, run, seed, test = task
    words = "\n".join([title_words(pair, run, seed=seed), test])
    panel.set_title(words, loc="left", fontsize="small")
    panel.set(xlim=(0, 100), xlabel=f"percent of {pruned} pruned", ylabel=axis)
