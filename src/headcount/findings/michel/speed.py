"""Speed of one model without more and more of its heads, really removed."""

from functools import cache

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings import exhibits, speedups
from headcount.findings.figures import GREY, Drawn, colours, legend_above, panels, start_at_zero
from headcount.findings.michel.measured import describe_models
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, KEYS, Results, gather
from headcount.findings.setting import PHASES, describe_setting
from headcount.findings.significance import paired_t
from headcount.findings.tables import NONE, Table, fill_empty, run_cells, with_bounds

_READ = ["model", "heads_left", "parameters", "phase", "batch_size", "repeat", "sentences"]
_READ += ["steps", "seconds"]
_SETUP = [*KEYS, "phase", "batch_size"]
COLUMNS = [*_SETUP, "percent", "heads_left", "parameters", "repeats", "mean", "sd", "steps"]
COLUMNS += ["speedup", *speedups.COLUMNS]
TIMES = [*KEYS, "repeats", "importance", "training", "ratio", "ratio_low", "ratio_high"]


@exhibits.table("michel_speed", needs=("share_speed", "ablation"), question="speed")
def speed(results: Results) -> Table:
    """Table 4: speed without heads."""
    tidy = with_printed(speeds(results), _printed())
    return Table(
        tidy,
        _summary(tidy),
        "Sentences per second by share of heads removed (the least important ones) and batch "
        "size: in brackets the gain over the model with all heads. A gain within the deviation is "
        "none.",
        (
            "Mean ± standard deviation over repeats, in which the models take turns; gains are in "
            "steps per second.",
            PHASES,
            *_describe_timing(results),
            f"Rows whose source is paper: {michel.SOURCE}, Table 4, BERT.",
        ),
        speedups.warn_of_noise(speeds(results)),
    )


@exhibits.figure(
    "michel_speed", needs=("share_speed", "ablation"), question="speed", beside="michel_speed"
)
def speed_figure(results: Results) -> Drawn:
    """Speed by share of heads removed."""
    table = speeds(results)
    return Drawn(
        _draw(table),
        table.assign(source="ours"),
        "Speed without a share of heads, the least important ones, really removed, relative to "
        "the model with all heads. A gain whose bar reaches 1 is none.",
        (
            speedups.INTERVAL,
            "Encode: one pass of the encoder over a batch, with the keys and values that the "
            "decoder takes from it; decode: steps of the beam search, encoder included, since a "
            "damaged model makes other and longer translations.",
            *_describe_timing(results),
        ),
        speedups.warn_of_noise(table),
    )


@exhibits.table("michel_importance_speed", needs=("importance_speed",), question="speed")
def importance_speed(results: Results) -> Table:
    """How long importance takes."""
    tidy = importance_times(results)
    shown = pd.DataFrame(
        run_cells(*row[: len(KEYS)])
        | {"importance": f"{row.importance:.3g} s", "training": f"{row.training:.3g} s"}
        | {"ratio": with_bounds(row.ratio, row.ratio_low, row.ratio_high)}
        for row in tidy.itertuples(index=False)
    )
    return Table(
        tidy,
        shown,
        "Seconds that the importance of all heads takes, beside an epoch of training on the same "
        "batches. A ratio of 1 is the price of training.",
        (
            "Geometric means over repeats, in which the two take turns; in brackets the 95 % t "
            "interval of the ratio. Training: one update a batch, of all weights.",
            *describe_setting(results, tidy),
        ),
    )


@cache
def importance_times(results: Results) -> pd.DataFrame:
    """One model a row: columns of `TIMES`; the ratio is importance ÷ training.

    Interval over repeats, by t on the logarithms; empty with one repeat.
    """
    raw = gather(results.files("importance_speed"), ["work", "repeat", "seconds"])
    rows = []
    for key, found in raw.groupby(KEYS, sort=False):
        logs = np.log(found.pivot(index="repeat", columns="work", values="seconds").astype(float))
        gaps = (logs["importance"] - logs["training"]).to_numpy()
        low, high = np.exp(paired_t(gaps)[:2]) if len(gaps) > 1 else ("", "")
        means = np.exp(logs.mean())
        ratio = means["importance"] / means["training"]
        rows.append((*key, len(gaps), means["importance"], means["training"], ratio, low, high))
    return pd.DataFrame(rows, columns=TIMES)


def _describe_timing(results: Results) -> tuple[str, ...]:
    """On what the times were taken, by the JSON beside each share_speed.csv, models and data."""
    found = [read_json(path.with_suffix(".json")) for path in results.files("share_speed")]
    searches = sorted({fact["beam"] for fact in found})
    machines = sorted({f"{fact['threads']} thread(s) of a {fact['device']}" for fact in found})
    sizes = sorted({str(fact["sentences"]) for fact in found})
    return (
        f"Timed on the first {', '.join(sizes)} sentences of dev, by {', '.join(machines)}, beam "
        f"{', '.join(map(str, searches))}.",
        *describe_models(results),
    )


@cache
def speeds(results: Results) -> pd.DataFrame:
    """One share, phase and batch size a row: columns of `COLUMNS`.

    `percent` of heads removed; `mean` and `sd` (ddof 1; empty with one repeat) of sentences per
    second over `repeats`; `steps` of the search per sentence; `speedup`: steps per second ÷ those
    with all heads, above 1 is faster, and its 95 % interval over repeats (empty with one). Raises
    UserError where that was not timed.
    """
    raw = gather(results.files("share_speed"), _READ).rename(columns={"model": "percent"})
    raw["rate"] = raw["sentences"] / raw["seconds"]
    raw["steps"] = raw["steps"] / raw["sentences"]
    groups = raw.groupby([*_SETUP, "percent", "heads_left", "parameters", "steps"], sort=False)
    table = groups["rate"].agg(repeats="size", mean="mean", sd="std").reset_index()
    table["sd"] = fill_empty(table["sd"])
    by_second = table["mean"] * table["steps"]
    setups = [table[name] for name in _SETUP]
    whole = by_second.where(table["percent"] == 0).groupby(setups).transform("first")
    if whole.isna().any():
        lacking = next(table.loc[whole.isna(), _SETUP].itertuples(index=False, name=None))
        raise UserError(
            f"share_speed.csv of {lacking}: expected times of the model with all heads, found "
            "none; run scripts/share_speed.py again"
        )
    found = speedups.speedup_intervals(raw, _SETUP, "percent", 0)
    table = table.assign(speedup=by_second / whole).merge(found, "left", [*_SETUP, "percent"])
    table[speedups.COLUMNS] = fill_empty(table[speedups.COLUMNS])
    return table[COLUMNS]


def _printed() -> pd.DataFrame:
    table = michel.speed()
    whole = table[table["heads"] == 100].set_index("batch_size")["mean"]
    table["speedup"] = table["mean"] / whole.loc[table["batch_size"]].to_numpy()
    table = table.assign(percent=100 - table["heads"], pair="BERT", run=BASE)
    return table.assign(phase="classify", repeats=6).sort_values(["percent", "batch_size"])


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per share, columns for phases and batch sizes."""
    rows = []
    for (*run, percent, source), found in table.groupby([*KEYS, "percent", "source"], sort=False):
        left, size = found.iloc[0][["heads_left", "parameters"]]
        row = run_cells(*run) | {"removed": f"{percent} %", "heads left": str(left) or NONE}
        row["parameters"] = f"{size:,}" if size else NONE
        for cell in found.itertuples():
            gain = "" if percent == 0 else f" ({cell.speedup - 1:+.1%})"
            spread = NONE if cell.sd == "" else f"{cell.sd:.2g}"
            steps = f", {cell.steps:.1f} steps" if cell.phase == "decode" else ""
            shown = f"{cell.mean:.4g} ± {spread}{steps}{gain}"
            row[f"{cell.phase}, batch {cell.batch_size}"] = shown
        rows.append(row | {"source": source})
    shown = pd.DataFrame(rows).fillna(NONE)
    return shown[[*shown.columns.drop("source"), "source"]]


def _draw(table: pd.DataFrame) -> Figure:
    """A panel per model and phase, a line per batch size: steps per second relative to all heads.

    Bars are 95 % intervals over repeats; the dotted line is no change.
    """
    tasks = list(table.groupby([*KEYS, "phase"], sort=False))
    figure, axes = panels(len(tasks), width=4.0, height=3.2, share=True)
    sizes = sorted(table["batch_size"].unique())
    for panel, ((pair, run, seed, phase), rows) in zip(axes, tasks, strict=True):
        for colour, size in zip(colours(len(sizes)), sizes, strict=True):
            of_size = rows[rows["batch_size"] == size].sort_values("percent")
            style = {"color": colour, "marker": "o", "markersize": 4, "capsize": 3}
            style["label"] = f"batch {size}"
            # Bars side by side, so that they can be told apart.
            across = of_size["percent"] + 0.8 * sizes.index(size)
            panel.errorbar(across, of_size["speedup"], speedups.reach(of_size), **style)
        panel.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
        panel.set_title(f"{pair}, {run}, seed {seed}: {phase}", loc="left", fontsize="small")
        panel.set_xlabel("percent of heads removed")
        panel.set_ylabel("speed ÷ that with all heads")
    start_at_zero(axes)
    legend_above(figure, axes)
    return figure
