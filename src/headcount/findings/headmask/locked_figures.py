"""Masks and slopes over training, side by side: the heads that were locked in, and the others."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.base.addresses import Head
from headcount.findings import exhibits
from headcount.findings.figures import (
    COLOURS,
    GREY,
    MOST_LINES,
    PAGE,
    Drawn,
    colour_bar,
    draw_legend,
    note,
)
from headcount.findings.headmask.locked_in import History
from headcount.findings.headmask.locked_tables import LOCKED_IN, SLOPE, recorded
from headcount.findings.headmask.mask_frequency import draw_frequency
from headcount.findings.kinds import SHORT, explain_kinds
from headcount.findings.results import HEAD, KEYS, Results
from headcount.findings.setting import describe_setting

_HEIGHT = 2.9  # inches of a training
_APART = 0.12  # inches above and below each; a legend is nearer to its own panel than to the next
_ONE_COLUMN = 3  # trainings; more stand two abreast


@exhibits.figure("headmask_locked_fig", needs=("masks", "slopes"), beside="headmask_locked")
def locked_fig(results: Results) -> Drawn:
    """Heads locked in over training, and their slopes."""
    shown = _one_seed(recorded(results))
    caption = (
        "Share of updates that masked each head (left), and the mean slope of the heads that were "
        "locked in beside that of the others (right), of one seed of each run. A locked head whose "
        "slope stays above 0 is harm that masking keeps from being trained away."
    )
    lines = (
        "Lines: heads that were locked in, dotted while they were not; triangles at the map, of "
        "the same colour, show where they are. Grey: median and range of the other heads. Shaded: "
        "held updates. Heads are named by kind, layer and number."
    )
    rows = [_numbers(history) for history in shown]
    data = pd.concat(rows) if rows else pd.DataFrame(columns=[*KEYS, "step", *HEAD])
    told = data if rows else pd.DataFrame([each.key for each in recorded(results)], columns=KEYS)
    notes = (lines, LOCKED_IN, SLOPE, explain_kinds(), *describe_setting(results, told))
    return Drawn(_draw(shown), data, caption, notes)


def _one_seed(histories: list[History]) -> list[History]:
    """The first training of each pair and run that measured slopes."""
    first: dict[tuple[str, str], History] = {}
    for history in histories:
        if not np.isnan(history.slope_mean).all():
            first.setdefault(history.key[:2], history)
    return list(first.values())


def _numbers(history: History) -> pd.DataFrame:
    """What is drawn of one training, an interval and head a row."""
    intervals, heads = history.masked.shape
    table = pd.DataFrame(history.heads * intervals, columns=HEAD)
    table.insert(0, "step", np.repeat(history.ends, heads))
    for column in ("masked", "slope_mean", "slope_sd", "importance"):
        table[column] = getattr(history, column).ravel()
    table["locked"] = history.locked.ravel().astype(int)
    for key, value in zip(reversed(KEYS), reversed(history.key), strict=True):
        table.insert(0, key, value)
    return table


def _draw(histories: list[History]) -> Figure:
    """Of each training its masks, and its slopes; more than a few stand in two columns."""
    if not histories:
        return note("No run of this experiment measures importance in training.")
    figure, places = _pairs_of_panels(len(histories))
    keys: dict[str, Artist] = {}
    for (left, right), history in zip(places, histories, strict=True):
        image = draw_frequency(left, _numbers(history))
        pair, run, seed = history.key
        left.set_title(f"{run}\n{pair}, seed {seed}", loc="left", fontsize="small")
        left.grid(visible=False)
        left.xaxis.set_major_locator(MaxNLocator(2, integer=True))
        colours = _colours(int(history.ever.sum()))
        for place, colour in zip(np.flatnonzero(history.ever), colours, strict=True):
            beside = {"transform": left.get_yaxis_transform(), "clip_on": False}
            left.plot([1.03], [place + 0.5], "<", color=colour, markersize=4, **beside)
        keys = _draw_others(right, history) or keys
        _draw_slopes(right, history, colours)
    draw_legend(figure, keys)
    colour_bar(figure, image, "share of updates that masked the head")
    return figure


def _pairs_of_panels(count: int) -> tuple[Figure, list[np.ndarray]]:
    """A figure with two panels beside each other for each of so many trainings."""
    columns = 1 if count <= _ONE_COLUMN else 2
    rows = -(-count // columns)
    figure = Figure(figsize=(PAGE, _HEIGHT * rows + 0.6), layout="constrained")
    figure.get_layout_engine().set(h_pad=_APART)
    grid = figure.subplots(rows, 2 * columns, squeeze=False, width_ratios=(1, 1.25) * columns)
    pairs = list(grid.reshape(-1, 2))
    for panel in np.ravel(pairs[count:]):
        panel.remove()
    return figure, pairs[:count]


def _short(head: Head) -> str:
    """A head in a legend: its kind, layer and number."""
    return f"{SHORT[head.kind]} {head.layer}.{head.head}"


def _colours(count: int) -> list[str]:
    """One for each locked head; more than can be told apart share one."""
    return list(COLOURS[:count]) if count <= MOST_LINES else [COLOURS[1]] * count


def _draw_others(panel: Axes, history: History) -> dict[str, Artist]:
    """Middle and range of the slopes of heads that were never locked in, by updates.

    Returns what a legend has of them; nothing if none was measured.
    """
    others = history.slope_mean[:, ~history.ever]
    known = ~np.isnan(others).all(axis=1)
    if not known.any():
        return {}
    x, others = history.ends[known], others[known]
    ends = np.nanmin(others, axis=1), np.nanmax(others, axis=1)
    band = panel.fill_between(x, *ends, color=GREY, alpha=0.25, linewidth=0)
    (middle,) = panel.plot(x, np.nanmedian(others, axis=1), color=GREY)
    return {"other heads, median": middle, "other heads, range": band}


def _draw_slopes(panel: Axes, history: History, colours: list[str]) -> None:
    """Mean slope of each locked head by updates, and below the panel which they are."""
    count = len(colours)
    for number, (place, colour) in enumerate(
        zip(np.flatnonzero(history.ever), colours, strict=True)
    ):
        slope, on = history.slope_mean[:, place], history.locked[:, place]
        words = f"{count} heads that were locked in" * (not number)
        words = _short(history.heads[place]) if count <= MOST_LINES else words
        panel.plot(history.ends, slope, ":", color=colour, linewidth=1)
        style = {"color": colour, "linewidth": 1.5, "markersize": 3, "label": words or None}
        panel.plot(history.ends, np.where(on, slope, np.nan), "-o", **style)
    if history.run.held:
        held = np.clip([history.run.after, history.run.rule_from], 0, history.ends[-1])
        panel.axvspan(*held, color=GREY, alpha=0.1)
    panel.axhline(0, color="black", linewidth=0.8)
    panel.set_xlim(0, history.ends[-1])
    panel.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    panel.set_xlabel("updates", fontsize="small")
    panel.set_ylabel("slope, nats", fontsize="small")
    panel.tick_params(labelsize="small")
    if count:
        near = {"columnspacing": 1, "handlelength": 1.2, "borderpad": 0, "frameon": False}
        below = {"loc": "upper center", "bbox_to_anchor": (0.45, -0.24), "ncols": 3}
        panel.legend(fontsize="small", **below, **near)
