"""Voita's Figures 9 and 10: heads left of each kind, and in the decoder's layers."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.base.addresses import KINDS, NAMES, HeadGrid
from headcount.findings import exhibits
from headcount.findings.figures import COLOURS, Drawn, colours, legend_above, panels
from headcount.findings.kinds import WORDS
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, KEYS, Results
from headcount.findings.setting import OVER_SEEDS, seeds_of, warn_of_unlike_seeds
from headcount.findings.voita_pruning.measured import describe_pruning, pruned_models

KINDS_LEFT = [*KEYS, "lambda", "point", "kind", "pruned", "heads", "heads_left"]
LAYERS_LEFT = [*KEYS, "lambda", "point", "kind", "layers", "pruned", "heads_left"]
_PAPER_HEADS = 48  # of each kind
_PER_GROUP = 2  # layers, where a decoder has more than three, as in the paper
STYLES = [
    {"color": colour, "marker": marker, "linestyle": line}
    for colour, marker, line in zip(COLOURS, "os^D", ("-", "--", "-.", ":"), strict=False)
]
_STEPS = [1, 2, 4, 8, 10]  # counts of heads are mostly powers of two
_EDGE = 0.03  # of an axis, so that points at its ends are seen whole
READ_OFF = "The paper's points are read off its drawing; it prints neither λ nor spread."


@exhibits.figure("voita_fig9", needs=("pruned_heads",), beside="voita_pruning")
def fig9(results: Results) -> Drawn:
    """Figure 9: heads left of each kind."""
    points = kind_points(pruned_models(results), results.model.grid)
    return Drawn(
        _draw_kinds(points),
        points,
        "Heads left of each kind of attention as more are pruned, with gates on all kinds; each "
        "point is a λ. The line that falls first is of the kind that is needed least.",
        (
            *_describe_ours(points),
            f"Right: {voita.SOURCE}, Figure 9.",
            READ_OFF,
            *describe_pruning(results),
        ),
        warn_of_unlike_seeds(seeds_of(points[points["source"] == "ours"])),
    )


@exhibits.figure("voita_fig10", needs=("pruned_heads",), beside="voita_pruning")
def fig10(results: Results) -> Drawn:
    """Figure 10: heads left in the decoder's layers."""
    points = layer_points(pruned_models(results), results.model.grid)
    return Drawn(
        draw_layers(points),
        points,
        "Heads left in the decoder's layers as more heads of that kind are pruned, with gates on "
        "all kinds; each point is a λ. The line that falls first is of the layer that needs its "
        "heads least.",
        (
            "Two neighbouring layers are taken together where a decoder has more than three, as "
            "in the paper.",
            *_describe_ours(points),
            f"Below: {voita.SOURCE}, Figure 10.",
            READ_OFF,
            *describe_pruning(results),
        ),
        warn_of_unlike_seeds(seeds_of(points[points["source"] == "ours"])),
    )


def _describe_ours(points: pd.DataFrame) -> tuple[str, ...]:
    """Sentences on what bars are, or that there are no points of ours."""
    ours = points[points["source"] == "ours"]
    if ours.empty:
        return ("This experiment has no gates run on all kinds from the baseline.",)
    several = ours["seed"].nunique() > 1
    return ("Bars: standard deviation over seeds.", OVER_SEEDS) if several else ()


def kind_points(models: pd.DataFrame, grid: HeadGrid) -> pd.DataFrame:
    """Figure 9: heads left of each kind, a gates run on all kinds and kind a row; the paper's.

    `models` comes from `pruned_models`, and `grid` has their heads before. Columns of `KINDS_LEFT`,
    source; `point` is what belongs together over seeds: the run, or a place in the paper's drawing;
    `pruned` in the whole model; `heads`: of the kind, before.
    """
    rows = [
        model
        | {"kind": kind, "pruned": model["heads"] - model["heads_left"]}
        | {"heads": sum(grid.counts[kind]), "heads_left": model[kind]}
        for model in _sweep_of_all(models)
        for kind in KINDS
    ]
    printed = voita.table("figure9").rename(columns={"value": "heads_left"})
    printed = printed.assign(point=printed["pruned"], heads=_PAPER_HEADS)
    return with_printed(pd.DataFrame(rows, columns=KINDS_LEFT), printed)


def layer_points(models: pd.DataFrame, grid: HeadGrid) -> pd.DataFrame:
    """Figure 10: heads left in the decoder's layers, a gates run, kind and group of layers a row.

    `grid` has the heads of the models that were pruned. Columns of `LAYERS_LEFT`, source; as
    `kind_points`, with layers (two neighbours where a decoder has more than three); here pruned
    counts heads of this kind.
    """
    rows = [
        model
        | {"kind": kind, "pruned": sum(grid.counts[kind]) - model[kind]}
        | {"layers": words, "heads_left": left}
        for model in _sweep_of_all(models)
        for kind in KINDS[1:]
        for words, left in _by_layers(model[f"{kind}_layers"])
    ]
    printed = voita.table("figure10").rename(columns={"value": "heads_left"})
    printed["point"] = printed["pruned"]
    # The paper's axis: heads of this kind, not of the whole model as in Figure 9.
    left = printed.groupby(["kind", "point"], sort=False)["heads_left"].transform("sum")
    printed["pruned"] = _PAPER_HEADS - left
    fewer = printed["layers"].str.replace(r"\d+", lambda found: str(int(found[0]) - 1), regex=True)
    printed["layers"] = fewer  # the paper counts them from 1
    return with_printed(pd.DataFrame(rows, columns=LAYERS_LEFT), printed)


def _sweep_of_all(models: pd.DataFrame) -> list[dict]:
    """Gates runs on all kinds from the baseline, fewest heads pruned first."""
    gates = (models["how"] == "gates") & (models["scope"] == "all") & (models["start"] == BASE)
    chosen = models.assign(point=models["run"])[gates]
    return chosen.sort_values("heads_left", ascending=False, kind="stable").to_dict("records")


def _by_layers(left: tuple[int, ...]) -> list[tuple[str, int]]:
    """Names of groups of layers, and the heads left in each."""
    size = _PER_GROUP if len(left) > _PER_GROUP + 1 else 1
    groups = []
    for first in range(0, len(left), size):
        last = min(first + size, len(left))
        words = f"{first}–{last - 1}" if last > first + 1 else str(first)
        groups.append((words, sum(left[first:last])))
    return groups


def _draw_kinds(points: pd.DataFrame) -> Figure:
    """Figure 9: heads left of each kind by heads pruned, a panel per pair, then the paper's two."""
    tasks = list(points.groupby(["source", "pair"], sort=False))
    figure, axes = panels(len(tasks))
    for panel, ((source, pair), rows) in zip(axes, tasks, strict=True):
        for kind, style in zip(KINDS, STYLES, strict=False):
            _mean_line(panel, rows[rows["kind"] == kind], {"label": WORDS[kind], **style})
        title(panel, pair, source)
        count_axis(panel, "heads pruned, of all kinds", rows["pruned"].max())
        count_axis(panel, "heads left", rows["heads_left"].max(), "y")
    legend_above(figure, axes)
    return figure


def draw_layers(points: pd.DataFrame) -> Figure:
    """Figure 10: heads left by decoder layers; a row per pair and one for the paper's."""
    tasks = list(points.groupby(["source", "pair"], sort=False))
    figure, axes = panels(2 * len(tasks), columns=2)
    for place, ((source, pair), of_pair) in enumerate(tasks):
        groups = of_pair["layers"].unique()
        for panel, kind in zip(axes[2 * place :], KINDS[1:], strict=False):
            found = of_pair[of_pair["kind"] == kind]
            for number, colour in enumerate(colours(len(groups))):
                words = groups[number]
                style = STYLES[number % len(STYLES)] | {"color": colour}
                style["label"] = f"{'layers' if '–' in words else 'layer'} {words}"
                _mean_line(panel, found[found["layers"] == words], style)
            title(panel, f"{pair}: {NAMES[kind]}", source)
            count_axis(panel, f"{WORDS[kind]} heads pruned", found["pruned"].max())
            count_axis(panel, "heads left", of_pair["heads_left"].max(), "y")
            panel.legend(fontsize="small", frameon=True)
    return figure


def _mean_line(panel: Axes, rows: pd.DataFrame, style: dict) -> None:
    """Means over seeds of one sweep, ± a standard deviation on both axes."""
    numbers = rows.astype({"pruned": float, "heads_left": float})
    of_run = numbers.groupby("point", sort=False)[["pruned", "heads_left"]]
    found = of_run.agg(["mean", "std"]).fillna(0)
    found = found.sort_values(("pruned", "mean"), kind="stable")
    across, up = found["pruned"], found["heads_left"]
    ends = (up["std"], across["std"]) if rows["seed"].nunique() > 1 else ()
    draw_line(panel, across["mean"], up["mean"], ends, style)


def draw_line(panel: Axes, across: pd.Series, up: pd.Series, ends: tuple, style: dict) -> None:
    """Points with a line through them; `ends` say how far bars reach, if there are any."""
    panel.plot(across, up, markersize=4.5, linewidth=1.3, **style)
    if ends:
        bars = {"fmt": "none", "ecolor": style["color"], "elinewidth": 1, "capsize": 2}
        panel.errorbar(across, up, *ends, **bars)


def title(panel: Axes, words: str, source: str) -> None:
    """Title of a panel of ours or of the paper."""
    printed = "\npaper, EN-RU" if source == "paper" else ""
    panel.set_title(f"{words}{printed}", loc="left", fontsize="small")


def count_axis(panel: Axes, words: str, largest: float, side: str = "x") -> None:
    """An axis of counts from 0 on that holds all bars drawn so far; `side`: x or y."""
    end = max(float(largest), 1)
    low, high = getattr(panel.dataLim, f"interval{side}")  # of nothing drawn ∞ and −∞
    ends = (min(-_EDGE * end, low), max(end * (1 + _EDGE), high))
    panel.set(**{f"{side}lim": ends, f"{side}label": words})
    axis = {"x": panel.xaxis, "y": panel.yaxis}[side]
    axis.set_major_locator(MaxNLocator(7, integer=True, steps=_STEPS))
