"""Masks and slopes over training, side by side: the heads that were locked in, and the others."""

from collections import Counter

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
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

_MAP, _AROUND = 1.75, 0.85  # inches of a map, and of its title and axis
_ENTRY = 0.18  # inches of a line of a legend
_APART = 0.15  # inches below a legend, so that it is nearer to its own panel than to the next
_ONE_COLUMN = 3  # trainings; more stand two abreast
_OTHERS = COLOURS[-1]  # of heads of the layers that have no colour of their own
_LOCKED, _FREE = {"linestyle": "-", "marker": "o", "markersize": 3}, {"linestyle": ":"}
Colours = dict[tuple[str, int], str]
"""By kind and layer."""


@exhibits.figure("headmask_locked_fig", needs=("masks", "slopes"), beside="headmask_locked")
def locked_fig(results: Results) -> Drawn:
    """Heads locked in over training, and their slopes."""
    shown = _one_seed(recorded(results))
    caption = (
        "Share of updates that masked each head (left), and the mean slope of the heads that were "
        "locked in beside that of the others (right), of one seed of each run. A slope that stays "
        "above 0 is, to first order, harm that masking keeps from being trained away."
    )
    lines = (
        "Lines: heads that were locked in, dotted while they were not; colours tell kind of "
        "attention and layer, from 0. Triangles at the map, of the same colour, show where they "
        "are. Grey: median and range of the other heads. Shaded: held updates."
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
    colours = layer_colours(histories)
    entries = [legend_entries(history, colours) for history in histories]
    figure, places = _places([len(of_one) for of_one in entries])
    keys: dict[str, Artist] = {}
    for (left, right, below), history, of_one in zip(places, histories, entries, strict=True):
        image = _draw_map(left, history, colours)
        keys |= _draw_others(right, history)
        _draw_slopes(right, history, colours)
        keys |= _draw_held(right, history)
        _draw_entries(below, of_one)
    draw_legend(figure, _line_keys() | keys)
    colour_bar(figure, image, "share of updates that masked the head")
    return figure


def layer_colours(histories: list[History]) -> Colours:
    """A colour for each kind and layer, all of them if so many can be told apart.

    Else for those that have most locked heads.
    """
    layers = list(dict.fromkeys(head[:2] for head in histories[0].heads))
    if len(layers) > MOST_LINES:
        found = Counter(head[:2] for each in histories for head in _locked(each))
        most = dict(found.most_common(MOST_LINES - 1))
        layers = [layer for layer in layers if layer in most]
    return dict(zip(layers, COLOURS[:MOST_LINES], strict=False))


def _locked(history: History) -> list[Head]:
    """The heads that were locked in, in the model's order."""
    return [history.heads[place] for place in np.flatnonzero(history.ever)]


def legend_entries(history: History, colours: Colours) -> dict[str, Artist]:
    """Keys of one training's legend: of each kind and layer, which heads were locked in."""
    heads = _locked(history)
    found = {}
    for layer, colour in colours.items():
        numbers = [str(head.head) for head in heads if head[:2] == layer]
        if numbers:
            word = "heads" if len(numbers) > 1 else "head"
            words = f"{SHORT[layer[0]]} layer {layer[1]}: {word} {', '.join(numbers)}"
            found[words] = Line2D([], [], color=colour, **_LOCKED)
    if others := sum(head[:2] not in colours for head in heads):
        found[f"heads of other layers: {others}"] = Line2D([], [], color=_OTHERS, **_LOCKED)
    return found


def _draw_entries(panel: Axes, entries: dict[str, Artist]) -> None:
    """One training's legend, at the top of a panel of its own, in which nothing is drawn."""
    panel.set_axis_off()
    style = {"loc": "upper left", "fontsize": "small", "frameon": False}
    near = {"borderpad": 0, "borderaxespad": 0, "handlelength": 1.2}
    panel.legend(entries.values(), entries.keys(), **style, **near)


def _line_keys() -> dict[str, Artist]:
    """Keys of the whole legend: what the lines of locked heads are."""
    looks = {"locked in": _LOCKED, "before and after": _FREE}
    return {words: Line2D([], [], color="black", **look) for words, look in looks.items()}


def _places(entries: list[int]) -> tuple[Figure, list[tuple[Axes, Axes, Axes]]]:
    """A figure, and for each training its map, its slopes beside it, and below both its legend.

    `entries`: how many each legend has.
    """
    columns = 1 if len(entries) <= _ONE_COLUMN else 2
    rows = [max(entries[first : first + columns]) for first in range(0, len(entries), columns)]
    heights = [height for lines in rows for height in (_MAP, _ENTRY * lines + _APART)]
    size = (PAGE, sum(heights) + _AROUND * len(rows) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    widths = (1, 1.25) * columns
    grid = figure.add_gridspec(
        len(heights), len(widths), width_ratios=widths, height_ratios=heights
    )
    places = []
    for place in range(len(entries)):
        row, column = 2 * (place // columns), 2 * (place % columns)
        cells = (grid[row, column], grid[row, column + 1], grid[row + 1, column : column + 2])
        places.append(tuple(map(figure.add_subplot, cells)))
    return figure, places


def _draw_map(panel: Axes, history: History, colours: Colours) -> QuadMesh:
    """Masks of one training, with a mark beside each head that was locked in."""
    image = draw_frequency(panel, _numbers(history))
    pair, run, seed = history.key
    panel.set_title(f"{run}\n{pair}, seed {seed}", loc="left", fontsize="small")
    panel.grid(visible=False)
    panel.xaxis.set_major_locator(MaxNLocator(2, integer=True))
    beside = {"transform": panel.get_yaxis_transform(), "clip_on": False, "markersize": 4}
    for place in np.flatnonzero(history.ever):
        colour = colours.get(history.heads[place][:2], _OTHERS)
        panel.plot([1.03], [place + 0.5], "<", color=colour, **beside)
    return image


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


def _draw_slopes(panel: Axes, history: History, colours: Colours) -> None:
    """Mean slope of each locked head by updates."""
    for place in np.flatnonzero(history.ever):
        slope, on = history.slope_mean[:, place], history.locked[:, place]
        colour = colours.get(history.heads[place][:2], _OTHERS)
        panel.plot(history.ends, slope, color=colour, linewidth=1, **_FREE)
        while_on = np.where(on, slope, np.nan)
        panel.plot(history.ends, while_on, color=colour, clip_on=False, **_LOCKED)
    panel.axhline(0, color="black", linewidth=0.8)
    panel.set_xlim(0, history.ends[-1])
    panel.xaxis.set_major_locator(MaxNLocator(2, integer=True))
    panel.set_xlabel("updates", fontsize="small")
    panel.set_ylabel("slope, nats", fontsize="small")
    panel.tick_params(labelsize="small")


def _draw_held(panel: Axes, history: History) -> dict[str, Artist]:
    """A band over the held updates, and its key; nothing if there are none."""
    if not history.run.held:
        return {}
    held = np.clip([history.run.after, history.run.rule_from], 0, history.ends[-1])
    band = {"facecolor": "none", "edgecolor": GREY, "hatch": "////", "linewidth": 0}
    return {"held updates": panel.axvspan(*held, **band)}
