"""HeadMask's Figures 1, 2, 4 and 5: BLEU of trained models with more or fewer heads masked."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from headcount.base.settings.runs import RunSettings
from headcount.findings.figures import COLOURS
from headcount.findings.masking import RUN
from headcount.findings.panels import legend_above, note, panels, run_styles
from headcount.findings.run_tables import BASE

_GREY = "#6E6E6E"
_CONTROL = "as many random heads"
_NO_BASELINE = f"This experiment has no run named {BASE}."
_BLUE = COLOURS[0]
_MARKERS = {"ascending": "^", "descending": "v"}
_LINES = {
    "ascending": ("least important first", "--"),
    "descending": ("most important first", "-"),
    "random_cumulative": ("random heads", ":"),
}
_TASK = RUN[:2]


def draw_groups(points: pd.DataFrame) -> Figure:
    """Figure 1: BLEU of the baseline with each group masked alone; see `group_points`."""
    if points.empty:
        return note(_NO_BASELINE)
    tasks = list(points.groupby(_TASK, sort=False))
    figure, axes = panels(len(tasks))
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        groups = rows[rows["order"] == "group"].sort_values("index")
        place = range(1, len(groups) + 1)
        low, high = _errors(groups)
        style = {"color": _BLUE, "width": 0.7, "capsize": 3, "ecolor": "black"}
        panel.bar(place, groups["bleu"], yerr=(low, high), label="this group masked", **style)
        _level(panel, rows[rows["order"] == "none"], "no head masked")
        _control_band(panel, rows[rows["order"] == "random_group"])
        panel.set_xticks(place)
        panel.set_xlabel(f"group of {_sizes(groups)} heads (1: most important)")
        panel.grid(axis="x", visible=False)
        panel.set_axisbelow(True)
        _finish(panel, task)
    legend_above(figure, axes, 3)
    return figure


def draw_cumulative(points: pd.DataFrame) -> Figure:
    """Figure 2: BLEU of the baseline with more and more heads masked; see `cumulative_points`."""
    if points.empty:
        return note(_NO_BASELINE)
    tasks = list(points.groupby(_TASK, sort=False))
    figure, axes = panels(len(tasks))
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        for order, marker in _MARKERS.items():
            words, line = _LINES[order]
            style = {"color": _BLUE, "linestyle": line, "marker": marker, "label": words}
            _line(panel, rows[rows["order"] == order], style)
        _control_curve(panel, rows[rows["order"] == "random_cumulative"])
        _level(panel, rows[rows["heads_masked"] == 0], "no head masked")
        _heads_axis(panel, rows)
        _finish(panel, task)
    legend_above(figure, axes, 3)
    return figure


def draw_groups_by_method(points: pd.DataFrame, runs: list[str]) -> Figure:
    """Figure 4: Figure 1's measure for every run, with its ends: no mask, and random groups."""
    tasks = list(points.groupby(_TASK, sort=False))
    figure, axes = panels(len(tasks), width=4.8)
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        last = int(rows["index"].max()) + 1
        for place, (run, style) in enumerate(run_styles(runs).items()):
            # Runs stand side by side, so that their error bars can be told apart.
            shift = 0.08 * (place - (len(runs) - 1) / 2)
            _ladder(panel, rows[rows["run"] == run], shift, last, {"label": run, **style})
        panel.set_xticks(range(last), ["none", *range(1, last)])
        panel.axvline(0.5, color=_GREY, linewidth=0.6)
        if "random_group" in set(rows["order"]):
            panel.set_xticks(range(last + 1), ["none", *range(1, last), "random"])
            panel.axvline(last - 0.5, color=_GREY, linewidth=0.6)
        panel.grid(axis="x", visible=False)
        panel.set_xlabel("masked group (1: most important to the model)")
        _finish(panel, task)
    legend_above(figure, axes, len(runs))
    return figure


def _ladder(panel: Axes, rows: pd.DataFrame, shift: float, last: int, style: dict) -> None:
    """One run: no mask at 0, its groups, and the control at `last`; all moved by `shift`."""
    bars = {"capsize": 2, "markersize": 4, "linewidth": 1}
    groups = rows[rows["order"] == "group"].sort_values("index")
    panel.errorbar(groups["index"] + shift, groups["bleu"], _errors(groups), **bars, **style)
    plain = bars | style | {"label": None, "linestyle": ""}
    for order, place in (("none", 0), ("random_group", last)):
        found = rows[rows["order"] == order]
        if len(found):
            panel.errorbar([place + shift], found["bleu"], _errors(found), **plain)


def panels_by_n(
    points: pd.DataFrame, settings: Mapping[str, RunSettings]
) -> list[tuple[tuple, pd.DataFrame]]:
    """Figure 5's panels: ((pair, test set, N), rows of the baseline and of the runs with that N).

    One for each N there is; without any, one with N = 0. `settings` are those of runs, by name.
    """
    counts = {run: settings[run].heads or 0 for run in points["run"].unique()}
    several = list(dict.fromkeys(count for run, count in counts.items() if run != BASE)) or [0]
    found = []
    for task, rows in points.groupby(_TASK, sort=False):
        for count in several:
            chosen = [run for run, masked in counts.items() if run == BASE or masked == count]
            found.append(((*task, count), rows[rows["run"].isin(chosen)]))
    return found


def draw_cumulative_by_n(
    points: pd.DataFrame, settings: Mapping[str, RunSettings], runs: list[str]
) -> Figure:
    """Figure 5: cumulative curves of every run, a panel for each N of masked training."""
    shown = panels_by_n(points, settings)
    columns = len({key[-1] for key, _ in shown})
    figure, axes = panels(len(shown), columns, width=4.8, height=3.6)
    styles = run_styles(runs)
    for panel, ((*task, count), rows) in zip(axes, shown, strict=True):
        for run, of_run in rows.groupby("run", sort=False):
            for order, (_, line) in _LINES.items():
                _plain_line(panel, of_run[of_run["order"] == order], line, styles[run]["color"])
        _heads_axis(panel, rows)
        _finish(panel, task)
        if count:
            panel.set_title(f"{panel.get_title(loc='left')}, N = {count}", loc="left")
    _two_part_legend(figure, styles, [_LINES[order] for order in points["order"].unique()])
    return figure


def _plain_line(panel: Axes, rows: pd.DataFrame, line: str, colour: str) -> None:
    wide = {"linewidth": 1.0 if line == ":" else 1.6, "color": colour}
    panel.plot(rows["heads_masked"], rows["bleu"], line, **wide)
    if line != ":":  # nine bands in a panel would hide one another; the CSV has them all
        band = {"color": colour, "alpha": 0.12, "linewidth": 0}
        panel.fill_between(rows["heads_masked"], rows["low"], rows["high"], **band)


def _two_part_legend(figure: Figure, styles: dict[str, dict], orders: list) -> None:
    """Colours are runs, dashes are orders, in columns of their own."""
    keys = [Line2D([], [], color=style["color"], label=run) for run, style in styles.items()]
    keys += [Line2D([], [], ls="", label="") for _ in range(-len(keys) % len(orders))]
    keys += [Line2D([], [], ls=line, color="black", label=words) for words, line in orders]
    columns = len(keys) // len(orders)
    figure.legend(handles=keys, loc="outside upper center", ncols=columns, frameon=False)


def _line(panel: Axes, rows: pd.DataFrame, style: dict[str, str]) -> None:
    bars = {"yerr": _errors(rows), "capsize": 2, "markersize": 5, "linewidth": 1.3}
    # Points at the ends of the axes are drawn whole.
    panel.errorbar(rows["heads_masked"], rows["bleu"], clip_on=False, **bars, **style)


def _level(panel: Axes, none: pd.DataFrame, words: str) -> None:
    style = {"color": "black", "linestyle": "-.", "linewidth": 0.9, "label": words}
    panel.axhline(none["bleu"].iloc[0], **style)


def _control_band(panel: Axes, rows: pd.DataFrame) -> None:
    """The range over random groups."""
    if rows.empty:
        return
    row = rows.iloc[0]
    behind = {"color": _GREY, "zorder": 0.5}
    panel.axhspan(row["low"], row["high"], alpha=0.3, linewidth=0, label=_CONTROL, **behind)


def _control_curve(panel: Axes, rows: pd.DataFrame) -> None:
    """The mean over random orders, and their range."""
    if rows.empty:
        return
    panel.plot(rows["heads_masked"], rows["bleu"], ":", color=_GREY, label="random heads")
    style = {"color": _GREY, "alpha": 0.2, "linewidth": 0, "label": "range of their draws"}
    panel.fill_between(rows["heads_masked"], rows["low"], rows["high"], **style)


def _errors(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Lengths of the error bars below and above.

    A bootstrap interval may miss its own centre; bars end at a BLEU of 0.
    """
    return (rows["bleu"] - rows["low"].clip(0)).clip(0), (rows["high"] - rows["bleu"]).clip(0)


def _sizes(groups: pd.DataFrame) -> str:
    sizes = sorted(set(groups["heads_masked"].astype(int)))
    return "–".join(map(str, (sizes[0], sizes[-1]) if len(sizes) > 1 else sizes))


def _heads_axis(panel: Axes, rows: pd.DataFrame) -> None:
    total = int(rows["heads_masked"].max())
    panel.set_xlim(0, total)
    panel.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    panel.set_xlabel(f"heads masked (of {total})")


def _finish(panel: Axes, task: tuple[str, str]) -> None:
    panel.set_title("\n".join(task), loc="left", fontsize="medium")
    panel.set_ylabel("BLEU")
    panel.set_ylim(bottom=0)
