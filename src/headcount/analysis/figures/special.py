"""Figures that a declaration cannot describe, drawn by hand."""

from itertools import product

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from headcount.analysis.collapse import Collapsed, collapse_labels
from headcount.analysis.figures.marks import MARKS
from headcount.analysis.figures.style import (
    grid,
    legend_above,
    make_styles,
    set_title,
    style_groups,
)

_TIMES = {"step": "updates", "minutes": "minutes of training"}
_LOSSES = {"dev_loss": "dev loss", "train_loss": "training loss"}


def loss_curves(frame: pd.DataFrame, collapsed: Collapsed) -> Figure:
    """Draw losses of every run by updates and by minutes: means over seeds and their range."""
    styles = make_styles(list(frame["run"].unique()), {}, collapse_labels(frame, collapsed))
    rows = list(product(frame["pair"].unique(), style_groups(list(styles)), _LOSSES))
    figure, axes = grid(len(rows), len(_TIMES), (4.5, 2.5), (0, 0.6), sharey="row")
    for line, (pair, group, loss) in zip(axes, rows, strict=True):
        of_pair = frame[(frame["pair"] == pair) & frame["run"].isin(group)]
        for panel, time in zip(line, _TIMES, strict=True):
            for run, of_run in of_pair.groupby("run", sort=False):
                points = _while_all_train(of_run, time, loss)
                layer = {"x": time, "y": "mean", "low": "min", "high": "max", "sparse": True}
                MARKS["line"](panel, points, layer, styles[run], 0)
            _set_axes(panel, time)
        set_title(line[0], f"{pair}: {_LOSSES[loss]}")
        line[0].set_ylabel("nats per target token")
    legend_above(figure, (panel for line in axes for panel in line))
    return figure


def _while_all_train(curves: pd.DataFrame, time: str, loss: str) -> pd.DataFrame:
    """Return mean and range of the loss over seeds, for the updates that all seeds have."""
    seeds = curves.groupby("step")["seed"].transform("nunique")
    common = curves.assign(minutes=curves["seconds"] / 60)[seeds == seeds.max()]
    steps = common.groupby("step", as_index=False)
    return (
        steps[loss].agg(["mean", "min", "max"]).assign(minutes=steps["minutes"].mean()["minutes"])
    )


def _set_axes(panel: Axes, time: str) -> None:
    panel.set_xlabel(_TIMES[time])
    panel.set_xlim(left=0)
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=time == "step"))
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
