"""HeadMask's Figures 1, 2, 4 and 5: BLEU of trained models with more or fewer heads masked."""

from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from headcount.base.settings.training_runs import RunSettings
from headcount.findings import exhibits, masking
from headcount.findings.figures import (
    COLOURS,
    GREY,
    PAGE,
    Drawn,
    draw_legend,
    legend_above,
    note,
    panels,
    run_groups,
    run_styles,
    start_at_zero,
)
from headcount.findings.headmask.collapse import collapsed_models
from headcount.findings.headmask.importance import read_importance
from headcount.findings.masked_training import collapse_notes, collapse_words
from headcount.findings.results import BASE, Results
from headcount.findings.setting import describe_importance, describe_setting, warn_of_unlike_seeds

_BLUE = COLOURS[0]
_MARKERS = {"ascending": "^", "descending": "v"}
_LINES = {"ascending": "--", "descending": "-"}
_ORDERS = {
    "ascending": "least important first",
    "descending": "most important first",
    "random_cumulative": "random heads",
}
_TASK = masking.RUN[:2]
_Draw = Callable[[Axes, pd.DataFrame], None]
_OF_BASE = f"run == {BASE!r}"
_OF_ONE_MODEL = "None of these is an interval of the difference between two models."


@exhibits.figure("headmask_fig1", needs=("masked",))
def fig1(results: Results) -> Drawn:
    """Figure 1: the baseline without one group of heads."""
    base = _rows(results).query(_OF_BASE)
    groups = masking.group_points(base)
    caption = (
        f"BLEU of the {BASE} when one group of heads is masked, without retraining. Were all "
        "heads alike, all groups would be as high as random heads."
    )
    ranked = "Heads are ranked by importance over the whole model."
    notes = (ranked, *_measured(results, base, groups))
    return Drawn(_draw_of_base(groups, _draw_groups), groups, caption, notes)


@exhibits.figure("headmask_fig2", needs=("masked",))
def fig2(results: Results) -> Drawn:
    """Figure 2: the baseline with more and more heads masked."""
    base = _rows(results).query(_OF_BASE)
    cumulative = masking.cumulative_points(base)
    caption = (
        f"BLEU of the {BASE} as more and more heads are masked, without retraining, from either "
        "end of the ranking by importance. The gap between the curves is what the ranking knows."
    )
    notes = _measured(results, base, cumulative)
    return Drawn(_draw_of_base(cumulative, _draw_cumulative), cumulative, caption, notes)


@exhibits.figure("headmask_fig4", needs=("masked", "masks"), uses=("curves",))
def fig4(results: Results) -> Drawn:
    """Figure 4: every training method without one group of heads."""
    rows = _rows(results)
    groups = masking.group_points(rows)
    caption = (
        "BLEU when one group of heads is masked, by training method; at the ends no mask, and as "
        "many random heads. A method that spreads importance makes a flat line."
    )
    ranked = "Groups are those of each model's own ranking by importance."
    styles, marked = _styles(results)
    notes = (ranked, _OF_ONE_MODEL, *marked, *_measured(results, rows, groups))
    parts = [
        (task, found[found["run"].isin(group)])
        for task, found in groups.groupby(_TASK, sort=False)
        for group in run_groups(list(styles))
    ]
    drawing = _draw_by_task(parts, partial(_draw_groups_by_method, styles), 4.8)
    return Drawn(drawing, groups, caption, notes, warn_of_unlike_seeds(groups))


@exhibits.figure("headmask_fig5", needs=("masked", "masks"), uses=("curves",))
def fig5(results: Results) -> Drawn:
    """Figure 5: every training method with more and more heads masked."""
    rows = _rows(results)
    cumulative = masking.cumulative_points(rows)
    counts = {key[-1] for key, _ in _rows_by_n(cumulative, results.runs)}
    which = "This experiment has one N only; the paper compares two." if len(counts) == 1 else ""
    if counts == {0}:
        which = "No run of this experiment masks heads in training."
    caption = (
        "BLEU as more and more heads are masked, by training method and order; a row for each "
        "number N of heads masked in training. A curve that falls later is of a model that loses "
        "less."
    )
    ranked = "Heads are ranked by each model's own importance."
    styles, marked = _styles(results)
    notes = (which, ranked, _OF_ONE_MODEL, *marked, *_measured(results, rows, cumulative))
    drawing = draw_cumulative_by_n(cumulative, results.runs, styles)
    return Drawn(drawing, cumulative, caption, notes, warn_of_unlike_seeds(cumulative))


def _rows(results: Results) -> pd.DataFrame:
    return results.read(masking.read_masking, "masking")


def _styles(results: Results) -> tuple[dict[str, dict[str, str]], tuple[str, ...]]:
    """Styles of the runs, in the order in which every figure has them; a note on what is marked."""
    models = results.read(read_importance, "importance")
    collapsed = collapse_words(collapsed_models(results), models)
    return run_styles(list(models["run"].unique()), collapsed), collapse_notes(collapsed)


def _measured(results: Results, rows: pd.DataFrame, points: pd.DataFrame) -> tuple[str, ...]:
    """Sentences on what bars and bands of a figure mean, and how BLEU and importance were measured.

    `rows` are of the runs that are drawn; without any, all runs are told. With one seed a bar says
    how sure the change from no mask is, not the BLEU at its centre.
    """
    exact = points.loc[~points["order"].str.startswith("random"), "spread"].unique()
    drawn = points["spread"].eq(masking.DRAWS).any()
    of_groups = " and of their groups" if points["order"].eq("random_group").any() else ""
    of_random = f"; of random heads: {masking.DRAWS}{of_groups} (and seeds)" if drawn else ""
    words = f"Error bars and bands: {' or '.join(exact)}{of_random}."
    tests = results.read(masking.describe_tests, "masking_facts")
    measured = (*masking.describe_cover(exact), tests, describe_importance(results.ranking))
    return (words, *measured, *describe_setting(results, _rows(results) if rows.empty else rows))


def _draw_by_task(tasks: list[tuple[tuple, pd.DataFrame]], draw: _Draw, width: float) -> Figure:
    """A panel of this width for each ((pair, test set), rows), and a legend."""
    figure, axes = panels(len(tasks), width=width)
    for panel, (task, rows) in zip(axes, tasks, strict=True):
        draw(panel, rows)
        _finish(panel, task)
    start_at_zero(axes)
    legend_above(figure, axes)
    return figure


def _draw_of_base(points: pd.DataFrame, draw: _Draw) -> Figure:
    """Figure 1 or 2, which are of the baseline alone."""
    if points.empty:
        return note(f"This experiment has no run named {BASE}.")
    return _draw_by_task(list(points.groupby(_TASK, sort=False)), draw, width=4.2)


def _draw_groups(panel: Axes, rows: pd.DataFrame) -> None:
    """Figure 1: BLEU of the baseline with each group masked alone; see `group_points`."""
    groups = rows[rows["order"] == "group"].sort_values("index")
    place = range(1, len(groups) + 1)
    style = {"color": _BLUE, "width": 0.7, "capsize": 3, "ecolor": "black"}
    style |= {"yerr": _errors(groups), "label": "this group masked"}
    panel.bar(place, groups["bleu"], **style)
    _level(panel, rows[rows["order"] == "none"])
    for row in rows[rows["order"] == "random_group"].itertuples():  # one, or none
        behind = {"color": GREY, "alpha": 0.3, "linewidth": 0, "zorder": 0.5}
        panel.axhspan(row.low, row.high, label="as many random heads", **behind)
    panel.set_xticks(place)
    sizes = sorted(set(groups["heads_masked"].astype(int)))
    size = "–".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))
    panel.set_xlabel(f"group of {size} heads (1: most important)")
    panel.grid(axis="x", visible=False)
    panel.set_axisbelow(True)


def _draw_cumulative(panel: Axes, rows: pd.DataFrame) -> None:
    """Figure 2: BLEU of the baseline with more and more heads masked; see `cumulative_points`."""
    for order, marker in _MARKERS.items():
        ranked = rows[rows["order"] == order]
        style = {"color": _BLUE, "linestyle": _LINES[order], "marker": marker}
        style["label"] = _ORDERS[order]
        style |= {"yerr": _errors(ranked), "capsize": 2, "markersize": 5, "linewidth": 1.3}
        # Points at the ends of the axes are drawn whole.
        panel.errorbar(ranked["heads_masked"], ranked["bleu"], clip_on=False, **style)
    drawn = rows[rows["order"] == "random_cumulative"]
    if len(drawn):
        x, words = drawn["heads_masked"], "range of their draws"
        panel.plot(x, drawn["bleu"], ":", color=GREY, label="random heads")
        band = {"color": GREY, "alpha": 0.2, "linewidth": 0, "label": words}
        panel.fill_between(x, drawn["low"], drawn["high"], **band)
    _level(panel, rows[rows["heads_masked"] == 0])
    _heads_axis(panel, rows)


def _draw_groups_by_method(
    styles: dict[str, dict[str, str]], panel: Axes, rows: pd.DataFrame
) -> None:
    """Figure 4: Figure 1's measure for every run, with its ends: no mask, and random groups."""
    last = int(rows["index"].max()) + 1
    runs = rows["run"].unique()
    for place, run in enumerate(runs):
        # Runs stand side by side, so that their error bars can be told apart.
        shift = 0.08 * (place - (len(runs) - 1) / 2)
        _ladder(panel, rows[rows["run"] == run], shift, last, styles[run])
    ends = ["random"] if "random_group" in set(rows["order"]) else []
    panel.set_xticks(range(last + len(ends)), ["none", *range(1, last), *ends])
    for place in (0.5, last - 0.5)[: 1 + len(ends)]:
        panel.axvline(place, color=GREY, linewidth=0.6)
    panel.grid(axis="x", visible=False)
    panel.set_xlabel("masked group\n(1: most important to the model)")


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


def _rows_by_n(
    points: pd.DataFrame, settings: Mapping[str, RunSettings]
) -> list[tuple[tuple, pd.DataFrame]]:
    """Figure 5's rows: ((pair, test set, N), rows of the baseline and of the runs with that N).

    One for each N there is; without any, one with N = 0. `settings` are those of runs, by name.
    """
    counts = {run: settings[run].heads or 0 for run in points["run"].unique()}
    several = list(dict.fromkeys(count for run, count in counts.items() if run != BASE)) or [0]
    found = []
    for task, rows in points.groupby(_TASK, sort=False):
        for count in several:
            chosen = [run for run, masked in counts.items() if run == BASE or masked == count]
            for group in run_groups(chosen):
                found.append(((*task, count), rows[rows["run"].isin(group)]))
    return found


def draw_cumulative_by_n(
    points: pd.DataFrame, settings: Mapping[str, RunSettings], styles: dict[str, dict[str, str]]
) -> Figure:
    """Figure 5: cumulative curves of every run, a row for each N of masked training.

    A panel of it has one order of masking, and a curve for each run. `styles` come from
    `run_styles`.
    """
    rows = _rows_by_n(points, settings)
    orders = [order for order in _ORDERS if order in set(points["order"])]
    figure, axes = panels(len(rows) * len(orders), len(orders), PAGE / 3, 2.9, share=True)
    for place, ((*task, count), found) in enumerate(rows):
        for panel, order in zip(axes[place * len(orders) :], orders, strict=False):
            for run, of_run in found[found["order"] == order].groupby("run", sort=False):
                _curve(panel, of_run, styles[run])
            _heads_axis(panel, found)
            number = f"N = {count}, " if count else ""
            _finish(panel, (f"{task[0]}, {task[1]}", f"{number}{_ORDERS[order]}"))
    start_at_zero(axes)
    draw_legend(figure, {style["label"]: Line2D([], [], **style) for style in styles.values()})
    return figure


def _curve(panel: Axes, rows: pd.DataFrame, style: dict[str, str]) -> None:
    """One run by one order, with its band."""
    x = rows["heads_masked"]
    panel.plot(x, rows["bleu"], linewidth=1.4, markersize=4, clip_on=False, **style)
    band = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
    panel.fill_between(x, rows["low"].clip(lower=0), rows["high"], **band)


def _level(panel: Axes, none: pd.DataFrame) -> None:
    style = {"color": "black", "linestyle": "-.", "linewidth": 0.9}
    panel.axhline(none["bleu"].iloc[0], label="no head masked", **style)


def _errors(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Lengths of the error bars below and above.

    A bootstrap interval may miss its own centre; bars end at a BLEU of 0.
    """
    return (rows["bleu"] - rows["low"].clip(0)).clip(0), (rows["high"] - rows["bleu"]).clip(0)


def _heads_axis(panel: Axes, rows: pd.DataFrame) -> None:
    total = int(rows["heads_masked"].max())
    panel.set_xlim(0, total)
    panel.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    panel.set_xlabel(f"heads masked (of {total})")


def _finish(panel: Axes, task: tuple[str, str]) -> None:
    panel.set_title("\n".join(task), loc="left", fontsize="medium")
    panel.set_ylabel("BLEU")
