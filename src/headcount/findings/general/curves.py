"""Training curves: loss against updates and against time."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from headcount.findings import exhibits
from headcount.findings.figures import Drawn, legend_above, panels, run_groups, run_styles
from headcount.findings.masked_training import collapse_notes, collapse_words, collapsed_in_training
from headcount.findings.results import Results, curve_table

_TIMES = (("step", "updates"), ("minutes", "minutes of training"))
_LOSSES = (("dev_loss", "dev loss"), ("train_loss", "training loss"))
_MARKS = 8  # on a curve, at most
_CAPTION = (
    "Loss per target token during training, by updates and by time, on logarithmic scales. A dev "
    "loss that still falls at the end is of a training that was cut short."
)
_NOTES = (
    "Dev loss is plain cross-entropy of the averaged weights; training loss is label-smoothed, of "
    "the weights in training, with dropout and the update's head mask on: the two cannot be "
    "compared.",
)
_SEEDS = (
    "Lines are means over seeds, of losses and of times, while all of these train, so that one may "
    "end before its loss turns; bands reach over all seeds."
)


@exhibits.figure("curves", needs=("curves",), uses=("trained_runs", "masks"), beside="bleu")
def curves(results: Results) -> Drawn:
    """Loss by updates and by time."""
    table = results.read(curve_table, "curves")
    collapsed = collapse_words(collapsed_in_training(results), table)
    seeds = (_SEEDS,) if table["seed"].nunique() > 1 else ()
    notes = (*_NOTES, *seeds, *collapse_notes(collapsed))
    return Drawn(draw_curves(table, collapsed), table, _CAPTION, notes)


def draw_curves(table: pd.DataFrame, collapsed: Mapping[str, str]) -> Figure:
    """Loss in nats per target token by updates, and by minutes: two rows of panels per pair.

    Where there are more runs than a panel has room for, they are parted, the first in each part.
    `collapsed` comes from `collapse_words`.
    """
    styles = run_styles(list(table["run"].unique()), collapsed)
    timed = table.assign(minutes=table["seconds"] / 60)
    rows = [
        (pair, of_pair[of_pair["run"].isin(group)], loss)
        for pair, of_pair in timed.groupby("pair", sort=False)
        for group in run_groups(list(styles))
        for loss in _LOSSES
    ]
    figure, axes = panels(2 * len(rows), 2, 4.5, 2.5)
    for place, (pair, found, (loss, words)) in enumerate(rows):
        for panel, (time, label) in zip(axes[2 * place :], _TIMES, strict=False):
            _draw_panel(panel, found, (time, loss), styles)
            panel.set_xlabel(label)
        first = axes[2 * place]
        first.set_title(f"{pair}: {words}", loc="left", fontsize="medium")
        first.set_ylabel("nats per target token")
        axes[2 * place + 1].sharey(first)
    legend_above(figure, axes)
    return figure


def _draw_panel(
    panel: Axes, table: pd.DataFrame, columns: tuple[str, str], styles: dict[str, dict[str, str]]
) -> None:
    """A loss of every run by one measure of time: means over seeds, in the band that they fill.

    While all seeds train: a mean over those that still do would leap, and go back in time.
    """
    time, loss = columns
    for run, of_run in table.groupby("run", sort=False):
        seeds = of_run.groupby("step")["seed"].transform("nunique")
        steps = of_run[seeds == seeds.max()].groupby("step")
        across, found = steps[time].mean(), steps[loss].agg(["mean", "min", "max"])
        often = max(1, len(found) // _MARKS)
        panel.plot(across, found["mean"], markersize=4, markevery=often, **styles[run])
        if of_run["seed"].nunique() > 1:
            band = {"color": styles[run]["color"], "alpha": 0.15, "linewidth": 0}
            panel.fill_between(across, found["min"], found["max"], **band)
    panel.set_xlim(left=0)
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=time == "step"))
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
