"""Speed and size of pruned models, from speed.csv; medians over repeats."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from headcount.base.errors import UserError
from headcount.findings import exhibits, speedups
from headcount.findings.figures import GREY, PAGE, Drawn, colour_bar, draw_legend
from headcount.findings.results import BASE, KEYS, Results, gather
from headcount.findings.scores import Scores
from headcount.findings.setting import PHASES
from headcount.findings.tables import NONE, Table, fill_empty, mean_count
from headcount.findings.voita_pruning import measured

_TIMED = ["model", "heads_left", "parameters", "file_bytes", "phase", "batch_size", "repeat"]
_TIMED += ["sentences", "steps", "seconds"]
_SETUP = ["pair", "seed", "phase", "batch_size"]
COLUMNS = [*KEYS, "how", "scope", "heads_left", "parameters", "file_bytes"]
COLUMNS += ["phase", "batch_size", "repeats", "milliseconds", "low", "high", "steps", "speedup"]
COLUMNS += speedups.COLUMNS
_MARKERS = {
    "": ("*", "not pruned"),
    "gates": ("o", "gates"),
    "ranked": ("s", "most important heads"),
    "drawn": ("^", "random heads"),
    "scratch": ("D", "from scratch"),
    "subset": ("v", "exactly K heads"),
}
_SIZES = (("parameters", "parameters (millions)"), ("file_bytes", "file (MB)"))


@exhibits.table("voita_speedup", needs=("pruned_heads", "pruned_speed"), question="speed")
def speedup(results: Results) -> Table:
    """Speed and size without the heads."""
    table = timed(results)
    whole = whole_model(results)
    return Table(
        table,
        _summary(table),
        "Speed and size of models whose heads were really removed: milliseconds per sentence, and "
        f"the speed-up per step against {whole}. A difference within the spread of the repeats is "
        "none.",
        (
            "Milliseconds per sentence: median over repeats, in which the models take turns; in "
            f"brackets the fastest and the slowest repeat. Speed-up: median of {whole} ÷ "
            "median of the model, each by its steps; above 1 is faster. Several seeds: means over "
            "seeds.",
            PHASES,
            *measured.describe_pruning(results),
        ),
        speedups.warn_of_noise(table),
    )


@exhibits.figure(
    "voita_speed", needs=("pruned_bleu", "pruned_speed"), question="speed", beside="voita_speedup"
)
def speed(results: Results) -> Drawn:
    """BLEU by speed and by size."""
    table = speed_with_bleu(timed(results), measured.all_scores(results))
    whole = whole_model(results)
    return Drawn(
        _draw(table, whole),
        table,
        f"BLEU on the first test set by speed-up per step against {whole} and by size, of models "
        "whose heads were really removed. A point is a model of one seed; a bar that reaches 1 is "
        "of no speed-up.",
        (
            speedups.INTERVAL,
            "Encode: one pass of the encoder over a batch; decode: beam search of whole "
            "sentences, encoder included.",
            *measured.describe_scored(results),
        ),
        speedups.warn_of_noise(table),
    )


def whole_model(results: Results) -> str:
    """The run with all heads that was timed beside pruned ones: the baseline, or a start of theirs.

    The baseline as well where none was.
    """
    names = gather(results.files("pruned_speed"), ["model"])["model"]
    whole = names[~names.isin(measured.pruned_models(results)["run"])].unique()
    return BASE if BASE in whole or not len(whole) else whole[0]


def timed(results: Results) -> pd.DataFrame:
    """One model that was timed, phase and batch size a row: columns of `COLUMNS`.

    `milliseconds` per sentence, the median over `repeats`, which lie between `low` and `high`;
    `steps` of the search per sentence; `speedup` = the median of `whole_model` ÷ this one, both by
    their steps, so that longer translations do not count as slowness; its 95 % interval is over
    repeats, empty with one. `how` and `scope` are empty for models that were not pruned. Raises
    UserError where no such model was timed beside.
    """
    start = whole_model(results)
    raw = gather(results.files("pruned_speed"), _TIMED)
    raw = raw.drop(columns="run").rename(columns={"model": "run"})
    raw["milliseconds"] = 1000 * raw["seconds"] / raw["sentences"]
    raw["steps"] = raw["steps"] / raw["sentences"]
    sizes = ["heads_left", "parameters", "file_bytes"]
    of_model = raw.groupby([*_SETUP, "run", *sizes, "steps"], sort=False)["milliseconds"]
    table = of_model.agg(repeats="size", milliseconds="median", low="min", high="max").reset_index()
    of_step = table["milliseconds"] / table["steps"]
    setups = [table[name] for name in _SETUP]
    whole = of_step.where(table["run"] == start).groupby(setups).transform("first")
    if whole.isna().any():
        pair, seed, phase, size = table.loc[whole.isna(), _SETUP].iloc[0]
        raise UserError(
            f"speed.csv of {pair}, seed {seed}: expected {start} timed beside the pruned models "
            f"({phase}, batch size {size}), found none"
        )
    table["speedup"] = whole / of_step
    sure = speedups.speedup_intervals(raw, _SETUP, "run", start)
    table = table.merge(sure, "left", [*_SETUP, "run"])
    table = table.merge(measured.pruned_models(results)[[*KEYS, "how", "scope"]], "left", KEYS)
    told = ["how", "scope", *speedups.COLUMNS]
    table[told] = fill_empty(table[told])
    return table[COLUMNS]


def speed_with_bleu(table: pd.DataFrame, scores: Scores) -> pd.DataFrame:
    """The table with `test_set` and `bleu`: each model's BLEU on its first test set."""
    firsts = [scores.of(key)[0] for key in table[KEYS].itertuples(index=False, name=None)]
    return table.assign(test_set=[row.test for row in firsts], bleu=[row.bleu for row in firsts])


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model, columns for phases and batch sizes."""
    rows = []
    for (pair, run), found in table.groupby(["pair", "run"], sort=False):
        one = found.drop_duplicates("seed")
        row = {"pair": pair, "run": run, "heads left": mean_count(one["heads_left"])}
        row["parameters"] = f"{one['parameters'].mean():,.0f}"
        row["file, MB"] = f"{one['file_bytes'].mean() / 1e6:.2f}"
        for (phase, size), timed in found.groupby(["phase", "batch_size"], sort=False):
            mean = timed[["milliseconds", "low", "high", "steps", "speedup"]].mean()
            spread = f"{mean['low']:.3g}–{mean['high']:.3g}"
            steps = f", {mean['steps']:.1f} steps" if phase == "decode" else ""
            cell = f"{mean['milliseconds']:.3g} ({spread}){steps}, ×{mean['speedup']:.2f}"
            row[f"{phase}, batch {size}"] = cell
        rows.append(row)
    return pd.DataFrame(rows).fillna(NONE)


def _draw(table: pd.DataFrame, whole: str) -> Figure:
    """BLEU by speed-up against `whole`, and by size; see `speed_with_bleu`.

    For each pair a row per phase: a panel per batch size, then one for parameters or bytes. A
    point is a model of one seed, its bar the 95 % interval over repeats; markers are ways to prune,
    colours the heads left.
    """
    phases, sizes = table["phase"].unique(), sorted(table["batch_size"].unique())
    rows = [(pair, *row) for pair in table["pair"].unique() for row in enumerate(phases)]
    width = min(2.7, (PAGE - 1.2) / (len(sizes) + 1))
    size = (max(width * (len(sizes) + 1) + 1.2, 6.5), 2.6 * len(rows) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    shared = len(rows) == len(phases)
    grid = figure.subplots(len(rows), len(sizes) + 1, squeeze=False, sharey=shared)
    scale = Normalize(0, table["heads_left"].max())
    for line, (pair, place, phase) in zip(grid, rows, strict=True):
        of_pair = table[table["pair"] == pair]
        of_phase = of_pair[of_pair["phase"] == phase]
        for panel, batch in zip(line, sizes, strict=False):
            _timed(panel, of_phase[of_phase["batch_size"] == batch], scale)
            panel.set_title(f"{phase}, batch {batch}", loc="left", fontsize="small")
            panel.set_xlabel(f"speed ÷ {whole}'s", fontsize="small")
        column, words = _SIZES[place % len(_SIZES)]
        one = of_pair.drop_duplicates(["run", "seed"])
        points = _points(line[-1], one, one[column] / 1e6, scale)
        line[-1].set_xlabel(words, fontsize="small")
        line[-1].set_title("size", loc="left", fontsize="small")
        test = of_pair["test_set"].iloc[0]
        line[0].set_ylabel(f"BLEU, {pair}\n{test}", fontsize="small")
    for panel in grid.flat:
        panel.tick_params(labelsize="small")
    colour_bar(figure, points, "heads left")
    _legend(figure, set(table["how"]))
    return figure


def _timed(panel: Axes, rows: pd.DataFrame, scale: Normalize) -> None:
    style = {"fmt": "none", "ecolor": GREY, "elinewidth": 0.8, "zorder": 1}
    panel.errorbar(rows["speedup"], rows["bleu"], xerr=speedups.reach(rows), **style)
    panel.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    _points(panel, rows, rows["speedup"], scale)


def _points(panel: Axes, rows: pd.DataFrame, across: pd.Series, scale: Normalize) -> PathCollection:
    for how, (marker, _) in _MARKERS.items():
        found = rows[rows["how"] == how]
        style = {"c": found["heads_left"], "cmap": "viridis", "norm": scale, "marker": marker}
        style |= {"s": 90 if marker == "*" else 32, "edgecolors": "black", "linewidths": 0.6}
        points = panel.scatter(across[found.index], found["bleu"], zorder=2, **style)
    return points


def _legend(figure: Figure, present: set[str]) -> None:
    """What the markers are of the ways to prune that there are."""
    plain = {"linestyle": "", "markerfacecolor": "white", "markeredgecolor": "black"}
    keys = {
        words: Line2D([], [], marker=marker, markersize=9 if marker == "*" else 6, **plain)
        for how, (marker, words) in _MARKERS.items()
        if how in present
    }
    draw_legend(figure, keys)
