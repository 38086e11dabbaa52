"""Scores as more and more heads are pruned: by order, by kind, and during training."""

from collections.abc import Sequence

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headcount.base.addresses import KINDS
from headcount.findings.figures import COLOURS
from headcount.findings.michel.metric import BLEU, Metric
from headcount.findings.michel.pruning import LEVEL, printed_points
from headcount.findings.panels import SHORT, legend_above, panels, title_words
from headcount.findings.published import michel
from headcount.findings.run_tables import KEYS

_TASK = [*KEYS, "test_set"]
_ORDERS = {
    "importance": ("importance", COLOURS[0], "-", "o"),
    "importance_raw": ("importance, not normalised", COLOURS[2], "-.", "^"),
    "single": ("{score} without the head alone", COLOURS[1], "--", "s"),
}
_GREY = "#6E6E6E"
_KINDS = dict(zip(KINDS, COLOURS, strict=False))


def draw_orders(tables: Sequence[pd.DataFrame], metric: Metric) -> Figure:
    """A panel per model: the score by share of heads pruned, in several orders.

    `tables`: `profile_points`, and `printed_curves` for panels of the paper. A hollow mark has a
    significant loss. The star is one head in every layer and kind.
    """
    tasks = _tasks(tables, ["all"])
    figure, axes = panels(len(tasks), width=4.4, height=3.4)
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        for order, (words, colour, line, marker) in _ORDERS.items():
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
        _finish(panel, task, metric)
    legend_above(figure, axes, 3)
    return figure


def draw_kinds(tables: Sequence[pd.DataFrame]) -> Figure:
    """A panel per model, as `draw_orders`: BLEU as heads of one kind are pruned alone."""
    tasks = _tasks(tables, KINDS)
    figure, axes = panels(len(tasks), width=4.4, height=3.4)
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        for kind, colour in _KINDS.items():
            style = {"color": colour, "marker": "o", "label": SHORT[kind]}
            _curve(panel, rows[rows["scope"] == kind], style)
        _finish(panel, task, BLEU)
        panel.set_xlabel("percent of the kind's heads pruned")
    legend_above(figure, axes, len(KINDS))
    return figure


def draw_training(points: pd.DataFrame) -> Figure:
    """A panel per model, and the paper's figure 5: percent of a checkpoint's BLEU that is kept."""
    known = points[points["kept"] != ""].rename(columns={"update": "when"})
    tasks = [(key, "update", rows) for key, rows in known.groupby(_TASK, sort=False)]
    printed = michel.kept_by_epoch().rename(columns={"epoch": "when", "value": "kept"})
    ends = [pd.DataFrame({"when": printed["when"].unique(), "percent": at, "kept": kept})
            for at, kept in ((0, 100.0), (100, 0.0))]  # fmt: skip
    paper = pd.concat([printed, *ends]).sort_values(["when", "percent"])
    tasks.append(((michel.SMALL_PAIR, "paper", "", ""), "epoch", paper))
    figure, axes = panels(len(tasks), width=4.6, height=3.8)
    for panel, (task, unit, rows) in zip(axes, tasks, strict=True):
        _by_time(panel, rows, unit)
        panel.set_title(_title(task), loc="left", fontsize="small")
        panel.set(xlim=(0, 100), xlabel="percent of heads pruned", ylabel="percent of BLEU kept")
        panel.set_ylim(bottom=0)
    return figure


def _by_time(panel: Axes, rows: pd.DataFrame, unit: str) -> None:
    """A line per checkpoint, dark ones early, ours with their intervals; equal heads' line."""
    times = sorted(rows["when"].unique())
    scale = matplotlib.colormaps["viridis"]
    panel.plot([0, 100], [100, 0], ":", color=_GREY, linewidth=1, zorder=0)
    for place, when in enumerate(times):
        curve = rows[rows["when"] == when]
        colour = scale(place / max(1, len(times) - 1) * 0.92)
        shown = len(times) <= 8 or place % 3 == 0 or place == len(times) - 1
        label = f"{unit} {when}" if shown else None
        if "kept_low" in curve:
            bounds = (curve[name].astype(float) for name in ("kept_low", "kept_high"))
            panel.fill_between(curve["percent"], *bounds, color=colour, alpha=0.15, linewidth=0)
        panel.plot(curve["percent"], curve["kept"].astype(float), color=colour, label=label)
    panel.legend(fontsize="x-small", frameon=False, loc="lower left")


def printed_curves() -> pd.DataFrame:
    """The paper's curves as `POINTS`, with `paper` as their run."""
    return printed_points().assign(run="paper").astype({"percent": float, "bleu": float})


def _tasks(
    tables: Sequence[pd.DataFrame], scopes: Sequence[str]
) -> list[tuple[tuple, pd.DataFrame]]:
    """The curves over heads of these scopes: a model's names and its rows each."""
    found = [table[table["scope"].isin(scopes)] for table in tables]
    return [task for table in found for task in table.groupby(_TASK, sort=False)]


def _curve(panel: Axes, rows: pd.DataFrame, style: dict) -> None:
    """One order; hollow where the loss is significant, with intervals where there are any."""
    if rows.empty:
        return
    width = {"linewidth": 1.4, "markersize": 4.5, "clip_on": False}
    if (rows["source"] == "paper").all():
        panel.plot(rows["percent"], rows["bleu"], **width, **style)
        return
    whole = rows["bleu"] - rows["delta"]
    low, high = (whole + rows["delta_low"]).clip(lower=0), whole + rows["delta_high"]
    panel.fill_between(rows["percent"], low, high, color=style["color"], alpha=0.15, linewidth=0)
    panel.plot(rows["percent"], rows["bleu"], **width, **style)
    lost = rows[(rows["delta"] < 0) & (rows["p"] < LEVEL)]
    hollow = {"linestyle": "", "markerfacecolor": "white", "label": None}
    if len(lost):
        panel.plot(lost["percent"], lost["bleu"], **(width | style | hollow))


def _random(panel: Axes, rows: pd.DataFrame) -> None:
    """The mean over random orders, and their range."""
    if rows.empty:
        return
    by_step = rows.groupby("percent")["bleu"].agg(["mean", "min", "max"])
    panel.plot(by_step.index, by_step["mean"], ":", color=_GREY, label="random (range of draws)")
    band = {"color": _GREY, "alpha": 0.2, "linewidth": 0}
    panel.fill_between(by_step.index, by_step["min"], by_step["max"], **band)


def _finish(panel: Axes, task: tuple, metric: Metric) -> None:
    panel.set_title(_title(task), loc="left", fontsize="small")
    panel.set(xlim=(0, 100), xlabel="percent of heads pruned", ylabel=metric.axis)
    panel.set_ylim(bottom=0)


def _title(task: tuple) -> str:
    pair, run, seed, test = task
    return "\n".join(part for part in (title_words(pair, run, seed=seed), test) if part)
