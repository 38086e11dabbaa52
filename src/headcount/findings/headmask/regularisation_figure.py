"""BLEU by the share of heads that training masks, beside tuned dropout."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headcount.base.settings.training_runs import RunSettings
from headcount.findings import exhibits
from headcount.findings.figures import GREY, Drawn, colours, draw_legend, panels
from headcount.findings.headmask.regularisation import (
    MEAN,
    of_experiment,
    read_models,
    warn_of_edges,
)
from headcount.findings.results import BASE, Results
from headcount.findings.setting import OVER_SEEDS, describe_setting, warn_of_unlike_seeds

POINTS = ["pair", "run", "series", "dropout", "share", "value", "low", "high", "seeds", "chosen"]
_MARKERS, _LINES = "os^vPX", ("-", "--", ":")
_APART = 1.0  # percentage points, at most, between ways to mask at the same share
_CAPTION = (
    f"BLEU minus the {BASE}'s, mean over test sets and seeds, by the share of heads that training "
    "masks. Masks help where a point lies above its line's beginning, the run of the same dropout "
    "without masks; above the grey line a run beats tuned dropout, perhaps by dropout alone."
)


@exhibits.figure(
    "headmask_regularisation",
    needs=("models_by_dropout", "scores", "curves"),
    uses=("masks",),
    beside="headmask_regularisation",
)
def figure(results: Results) -> Drawn:
    """Masking and dropout as regularisers."""
    table = of_experiment(results)
    points = regularisation_points(table, results.runs)
    notes = (
        "Bars and the grey band: 95 % t interval of the mean difference over seeds. At 0 % stand "
        "the runs without masks, which dropout alone regularises; lines join each of them to the "
        "runs that mask heads at its dropout. Ways to mask at the same share stand up to "
        f"{_APART:g} percentage points apart, so that their bars can be told.",
        "Grey line: of the runs without masks the one whose dev loss is lowest (table "
        "headmask_regularisation).",
        OVER_SEEDS,
        *describe_setting(results, results.read(read_models, "models_by_dropout")),
    )
    warnings = (*warn_of_edges(table), *warn_of_unlike_seeds(points))
    return Drawn(draw_regularisation(points), points, _CAPTION, notes, warnings)


def regularisation_points(table: pd.DataFrame, runs: Mapping[str, RunSettings]) -> pd.DataFrame:
    """A run a row, BLEU's mean difference to the baseline: columns of `POINTS`.

    `table` comes from `regularisation_table`. The baseline itself is at 0 without an interval.
    `series`: the way to mask, without a number of heads and dropout; empty without masks.
    """
    means = table[(table["test_set"] == MEAN) & (table["statistic"] == "bleu")]
    plain = means[(means["run"] == BASE) & (means["reference"] == "")].assign(value=0.0)
    found = pd.concat([plain, means[means["reference"] == "baseline"]], ignore_index=True)
    return found.assign(series=[_series(runs[run]) for run in found["run"]])[POINTS]


def _series(run: RunSettings) -> str:
    return run.way if run.heads else ""


def draw_regularisation(points: pd.DataFrame) -> Figure:
    """A panel per pair; `points` come from `regularisation_points`.

    Colours tell dropout, marks and lines the way to mask.
    """
    pairs = list(points.groupby("pair", sort=False))
    drawing, axes = panels(len(pairs), width=5.5, height=3.9, share=True)
    rates = sorted(points["dropout"].unique())
    tints = dict(zip(rates, colours(len(rates)), strict=True))
    looks = _looks(points)
    keys = _keys(looks, tints)
    for panel, (pair, rows) in zip(axes, pairs, strict=True):
        keys |= _draw_levels(panel, rows)
        _draw_points(panel, rows, looks, tints)
        panel.set_title(pair, loc="left", fontsize="medium")
        panel.set_xlabel("heads masked in an update (%)")
    axes[0].set_ylabel("BLEU − baseline’s")
    draw_legend(drawing, keys)
    return drawing


def _looks(points: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Mark and line of each way to mask, and of no masks, which come first."""
    ways = [way for way in points["series"].unique() if way]
    looks = {"": {"marker": "D", "linestyle": ""}}
    for place, way in enumerate(ways):
        mark, line = _MARKERS[place % len(_MARKERS)], _LINES[place % len(_LINES)]
        looks[way] = {"marker": mark, "linestyle": line}
    return looks


def _keys(
    looks: dict[str, dict[str, str]], tints: dict[float, str]
) -> dict[str, Artist | tuple[Artist, ...]]:
    """Keys of a legend: what colours mean, and what marks do."""
    ways = {way or "no masks": look for way, look in looks.items()}
    keys = {f"dropout {rate:g}": Line2D([], [], color=tint) for rate, tint in tints.items()}
    return keys | {way: Line2D([], [], color="black", **look) for way, look in ways.items()}


def _draw_levels(panel: Axes, rows: pd.DataFrame) -> dict[str, Artist | tuple[Artist, ...]]:
    """Lines for the baseline and tuned dropout, and the latter's interval; keys of a legend.

    The key of intervals is a band with a bar, since both are drawn.
    """
    base = panel.axhline(0, color="black", linestyle="-.", linewidth=0.9)
    (tuned,) = rows[(rows["series"] == "") & (rows["chosen"] == "yes")].itertuples()
    keys = {BASE: base, "tuned dropout": panel.axhline(tuned.value, color=GREY, linewidth=1.4)}
    band = {"color": GREY, "alpha": 0.18, "linewidth": 0}
    bands = [panel.axhspan(tuned.low, tuned.high, **band)] if tuned.low != "" else []
    if (rows["low"] != "").any():
        bar = Line2D([], [], color="black", marker="|", linestyle="", markersize=10)
        keys["95 % interval"] = (*bands, bar)
    return keys


def _draw_points(
    panel: Axes, rows: pd.DataFrame, looks: dict[str, dict[str, str]], tints: dict[float, str]
) -> None:
    """Every run at its share, joined to that without masks which has its dropout."""
    shifts = dict(zip(looks, [0, *np.linspace(0, _APART, len(looks) - 1)], strict=True))
    starts = rows[rows["series"] == ""]
    for (way, rate), of_way in rows.groupby(["series", "dropout"], sort=False):
        found = of_way.sort_values("share", kind="stable")
        value, low, high = _bars(found)
        x, style = 100 * found["share"] + shifts[way], {"color": tints[rate], "linewidth": 1.3}
        marks = {"marker": looks[way]["marker"], "markersize": 5, "capsize": 3, "linestyle": ""}
        panel.errorbar(x, value, (value - low, high - value), **marks, **style)
        start = starts.loc[starts["dropout"] == rate, "value"].astype(float)
        line = {"linestyle": looks[way]["linestyle"]} | style
        panel.plot([*(0 for _ in start), *x], [*start, *value], **line)


def _bars(rows: pd.DataFrame) -> list[pd.Series]:
    """Values, and the ends of their intervals; without one, the value itself."""
    value = rows["value"].astype(float)
    ends = (rows[end].where(rows[end] != "", value).astype(float) for end in ("low", "high"))
    return [value, *ends]
