"""Ways to choose heads side by side: dev loss beside the baseline's, and masks of harm."""

import math

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure

from headcount.findings import exhibits
from headcount.findings.figures import COLOURS, GREY, PAGE, Drawn, draw_legend, with_minus
from headcount.findings.headmask.variants import HARM, of_experiment
from headcount.findings.results import BASE, Results, curve_table
from headcount.findings.setting import OVER_SEEDS, describe_setting

_LINE, _AROUND = 0.28, 1.3  # inches of a run, and of a panel's title and axis
_STRAIGHT = 0.1  # nats on either side of 0; beyond, where trainings collapsed, in logarithms
# First those that matter.
_TICKS = (0, 0.1, -0.1, 1, -1, 10, -10, 100, 0.05, -0.05, 0.3, -0.3, 3, -3)
_MARGIN = 0.005  # nats, beyond the last that is drawn
_BETWEEN = 0.1  # of the axis, at least, from one number to the next
_SHARES = ("harmful_share", "heads_harmful_share")
_CAPTION = (
    f"Left: dev loss minus the {BASE}'s, mean over seeds; below 0 a way to mask helps, if its "
    f"dropout is the {BASE}'s. Right: share of masks that fell on heads of harm; below that of all "
    "heads a way to choose finds heads of use."
)


@exhibits.figure(
    "headmask_variants",
    needs=("variants", "scores", "curves", "masks", "slopes"),
    beside="headmask_variants",
)
def figure(results: Results) -> Drawn:
    """Ways to choose the heads that training masks."""
    points = variants_points(of_experiment(results))
    bars = "Bars: 95 % t interval of the mean difference over seeds, after as many updates "
    bars += "(with train.patience trainings differ in length). The axis of dev loss is in equal "
    bars += f"steps up to {_STRAIGHT:g} nats on either side of 0, and in logarithms where shaded."
    setting = describe_setting(results, results.read(curve_table, "curves"))
    notes = (bars, HARM, OVER_SEEDS, *setting)
    return Drawn(draw_variants(points), points, _CAPTION, notes)


def variants_points(table: pd.DataFrame) -> pd.DataFrame:
    """What is drawn of `variants_table`: differences of dev loss to the baseline, and shares."""
    loss = (table["statistic"] == "dev_loss") & (table["reference"] == "baseline")
    return table[loss | table["statistic"].isin(_SHARES)].reset_index(drop=True)


def draw_variants(points: pd.DataFrame) -> Figure:
    """Two panels for each pair, one line for each run; `points` come from `variants_points`."""
    pairs = list(points.groupby("pair", sort=False))
    runs = {pair: list(rows["run"].unique()) for pair, rows in pairs}
    heights = [_LINE * len(runs[pair]) + _AROUND for pair, _ in pairs]
    figure = Figure(figsize=(PAGE, sum(heights)), layout="constrained")
    grid = figure.subplots(
        len(pairs), 2, squeeze=False, sharey="row", width_ratios=(1.4, 1), height_ratios=heights
    )
    marks: dict[str, Artist | Container] = {}
    for (left, right), (pair, rows) in zip(grid, pairs, strict=True):
        places = {run: place for place, run in enumerate(runs[pair])}
        marks |= _draw_losses(left, rows[rows["statistic"] == "dev_loss"], places)
        marks |= _draw_shares(right, rows, places)
        left.set_yticks(range(len(places)), list(places))
        left.set_ylim(len(places) - 0.5, -0.5)
        left.set_title(pair, loc="left", fontsize="medium")
    draw_legend(figure, marks)
    return figure


def _draw_losses(
    panel: Axes, rows: pd.DataFrame, places: dict[str, int]
) -> dict[str, Artist | Container]:
    """Mean differences to the baseline, with their intervals where there are such; their key."""
    value = rows["value"].astype(float)
    ends = (rows[end].where(rows[end] != "", value).astype(float) for end in ("low", "high"))
    low, high = ends
    style = {"fmt": "o", "color": COLOURS[0], "capsize": 3, "markersize": 5}
    bars = panel.errorbar(value, rows["run"].map(places), xerr=(value - low, high - value), **style)
    panel.axvline(0, color="black", linestyle="-.", linewidth=0.9)
    _scale(panel)
    words = f"equal steps up to ±{_STRAIGHT:g}, logarithms where shaded"
    panel.set_xlabel(f"dev loss − baseline’s, nats per target token\n({words})")
    return {"95 % t interval over seeds": bars} if (rows["low"] != "").any() else {}


def _scale(panel: Axes) -> None:
    """An axis of equal steps about 0 and of logarithms beyond; what is drawn is there already."""
    panel.set_xscale("symlog", linthresh=_STRAIGHT, linscale=2)
    first, last = map(_end, panel.dataLim.intervalx, (-1, 1))
    first, last = min(first, -0.01), max(last, 0.06)  # 0 and 0.05 have their numbers
    panel.set_xlim(first, last)
    for end in (first, last):
        if abs(end) > _STRAIGHT:
            edge = math.copysign(_STRAIGHT, end)
            panel.axvspan(*sorted((edge, end)), color=GREY, alpha=0.12, linewidth=0, zorder=0)
    shown = _apart([tick for tick in _TICKS if first <= tick <= last], panel)
    panel.set_xticks(shown, [with_minus(f"{tick:g}") for tick in shown])
    panel.minorticks_off()


def _end(drawn: float, side: int) -> float:
    """Where an axis ends on the side −1 or 1 that holds what is drawn there.

    In logarithms at a power of ten, which has its number.
    """
    if abs(drawn) <= _STRAIGHT:
        return side * min(_STRAIGHT, side * drawn + _MARGIN)
    return math.copysign(10 ** math.ceil(math.log10(abs(drawn))), drawn)


def _apart(ticks: list[float], panel: Axes) -> list[float]:
    """Those of these ticks, the first before others, whose numbers do not touch; in order."""
    to_axis = panel.transScale + panel.transLimits
    shown: dict[float, float] = {}
    for tick in ticks:
        place = to_axis.transform((tick, 0))[0]
        if all(abs(place - other) >= _BETWEEN for other in shown.values()):
            shown[tick] = place
    return sorted(shown)


def _draw_shares(panel: Axes, rows: pd.DataFrame, places: dict[str, int]) -> dict[str, Artist]:
    """Shares of harm among masks and among all heads; the marks, by their words."""
    marks = {}
    looks = ({"marker": "D", "color": COLOURS[1]}, {"marker": "|", "color": GREY})
    words = ("masks of harm", "all heads, as if masked alike")
    for statistic, name, look in zip(_SHARES, words, looks, strict=True):
        of = rows[rows["statistic"] == statistic]
        x, y = 100 * of["value"].astype(float), of["run"].map(places)
        style = {"linestyle": "none", "markersize": 6, "markeredgewidth": 1.5}
        (marks[name],) = panel.plot(x, y, **style, **look)
    panel.set_xlim(-3, 103)
    panel.set_xlabel("share of harm (%)")
    return marks
