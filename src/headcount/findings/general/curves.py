"""Training curves: loss against updates and against time."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.findings import exhibits
from headcount.findings.figures import Drawn, colours
from headcount.findings.results import Results, curve_table

_PANELS = (("step", "updates"), ("minutes", "minutes of training"))
_LINES = (("train_loss", "train (label-smoothed)", "--"), ("dev_loss", "dev", "-"))
_CAPTION = (
    "Loss per target token (nats) during training, by updates and by time. A dev loss that still "
    "falls at the end is of a training that was cut short."
)
_NOTES = (
    "Dev loss is plain cross-entropy of the averaged weights; training loss is label-smoothed, of "
    "the weights in training, with dropout and the update's head mask on.",
)


@exhibits.figure("curves", needs=("curves",), beside="bleu")
def curves(results: Results) -> Drawn:
    """Loss by updates and by time."""
    table = results.read(curve_table, "curves")
    return Drawn(draw_curves(table), table, _CAPTION, _NOTES)


def draw_curves(table: pd.DataFrame) -> Figure:
    """One row of panels per pair: loss in nats per target token by updates, and by minutes.

    A colour is a run; the seeds of a run share it.
    """
    pairs = table["pair"].unique()
    figure = Figure(figsize=(9, 1.0 + 3.0 * len(pairs)), layout="constrained")
    grid = figure.subplots(len(pairs), len(_PANELS), squeeze=False, sharey="row")
    timed = table.assign(minutes=table["seconds"] / 60)
    for row, pair in zip(grid, pairs, strict=True):
        for axes, (column, label) in zip(row, _PANELS, strict=True):
            _draw_panel(axes, timed[timed["pair"] == pair], column)
            axes.set_xlabel(label)
        row[0].set_title(pair, loc="left")
        row[0].set_ylabel("loss (nats per target token)")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
    return figure


def _draw_panel(axes: Axes, table: pd.DataFrame, column: str) -> None:
    runs = table.groupby("run", sort=False)
    for colour, (run, of_run) in zip(colours(len(runs)), runs, strict=True):
        for number, (_, curve) in enumerate(of_run.groupby("seed")):
            for loss, words, style in _LINES:
                label = f"{run}, {words}" if number == 0 else None
                axes.plot(curve[column], curve[loss], style, color=colour, label=label)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=column == "step"))
