"""BLEU by the share of heads that training masks, beside tuned dropout."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headcount.base.settings.training_runs import RunSettings
from headcount.findings import exhibits
from headcount.findings.figures import COLOURS, GREY, Drawn, legend_above, panels
from headcount.findings.headmask.regularisation import MEAN, of_experiment, warn_of_edges
from headcount.findings.results import BASE, Results
from headcount.findings.setting import OVER_SEEDS, describe_setting

POINTS = ["pair", "run", "series", "dropout", "share", "value", "low", "high", "seeds", "chosen"]
_MARKERS = "osD^vPX"
_APART = 0.5  # points of a percent between series at the same share
_CAPTION = (
    f"BLEU minus the {BASE}'s, mean over test sets and seeds, by the share of heads that training "
    "masks. Masking helps where a point lies above 0, and helps more than dropout does where it "
    "lies above the grey line."
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
        "Bars and the grey band: 95 % t interval of the mean difference over seeds. Points of one "
        "dropout are joined; at 0 % stands the run without masks, which dropout alone regularises. "
        "Ways to mask stand half a percent apart, so that their bars can be told.",
        "Grey line: of the runs without masks the one whose dev loss is lowest (table "
        "headmask_regularisation).",
        OVER_SEEDS,
        *describe_setting(results, points.assign(seed=points["seeds"])),
    )
    return Drawn(draw_regularisation(points), points, _CAPTION, notes, warn_of_edges(table))


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
    return "" if run.method == "baseline" else run.way


def draw_regularisation(points: pd.DataFrame) -> Figure:
    """A panel per pair; `points` come from `regularisation_points`."""
    pairs = list(points.groupby("pair", sort=False))
    drawing, axes = panels(len(pairs), width=4.6, height=3.6, share=True)
    for panel, (pair, rows) in zip(axes, pairs, strict=True):
        panel.axhline(0, color="black", linestyle="-.", linewidth=0.9, label=BASE)
        plain = rows[rows["series"] == ""]
        _draw_tuned(panel, plain[plain["chosen"] == "yes"].iloc[0])
        masked = rows[rows["series"] != ""].groupby(["series", "dropout"], sort=False)
        for place, ((series, rate), of_series) in enumerate(masked):
            start = plain[plain["dropout"] == rate]
            _draw_series(panel, pd.concat([start, of_series]), f"{series}, dropout {rate:g}", place)
        panel.set_title(pair, loc="left", fontsize="medium")
        panel.set_xlabel("heads masked in an update (%)")
    axes[0].set_ylabel("BLEU − baseline’s")
    legend_above(drawing, axes)
    return drawing


def _draw_tuned(panel: Axes, row: pd.Series) -> None:
    """A line for tuned dropout, and the interval of its difference as a band."""
    words = {"color": GREY, "label": "tuned dropout"}
    panel.axhline(row["value"], linewidth=1.4, **words)
    if row["low"] != "":
        panel.axhspan(row["low"], row["high"], color=GREY, alpha=0.18, linewidth=0)


def _draw_series(panel: Axes, rows: pd.DataFrame, words: str, place: int) -> None:
    """One way to mask with one dropout, by share; series are shifted so that bars can be told."""
    rows = rows.sort_values("share", kind="stable")
    value = rows["value"].astype(float)
    low, high = (rows[end].where(rows[end] != "", value).astype(float) for end in ("low", "high"))
    style = {"color": COLOURS[place % len(COLOURS)], "marker": _MARKERS[place % len(_MARKERS)]}
    style |= {"capsize": 2, "markersize": 5, "linewidth": 1.3, "label": words}
    panel.errorbar(
        100 * rows["share"] + _APART * place, value, (value - low, high - value), **style
    )
