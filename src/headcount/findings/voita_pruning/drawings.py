"""Voita's Figures 7, 9 and 10, and BLEU by number of heads for every way to choose them."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.base.addresses import KINDS
from headcount.findings.figures import COLOURS, colours
from headcount.findings.panels import SHORT, panels, run_styles
from headcount.findings.voita_pruning.comparison import START, TUNED, UNTUNED

_STYLES = [
    {"color": colour, "marker": marker, "linestyle": line}
    for colour, marker, line in zip(COLOURS, "os^D", ("-", "--", "-.", ":"), strict=False)
]
_KINDS = dict(zip(KINDS, _STYLES, strict=False))
_METHODS = dict(zip(("gates", "ranked", "drawn", "scratch"), _STYLES, strict=True))
_PAPER = "paper, EN-RU"


def draw_encoder(points: pd.DataFrame) -> Figure:
    """Figure 7: BLEU by encoder heads left, a panel per test set, then the paper's two.

    See `encoder_points`; each panel has its own scale of BLEU.
    """
    tasks = list(points.groupby(["source", "pair", "test_set"], sort=False))
    figure, axes = panels(len(tasks))
    for panel, ((source, pair, test), rows) in zip(axes, tasks, strict=True):
        ours = source == "ours"
        style = {"color": COLOURS[0 if ours else 1], "marker": "o" if ours else "s"}
        style |= {"markersize": 4.5, "linewidth": 1.3}
        heads, bleu = rows["heads_left"].astype(float), rows["bleu"].astype(float)
        if ours:
            panel.plot(heads, bleu, label="gates", zorder=3, **style)
            panel.errorbar(
                heads, bleu, _reach(rows, "bleu"), fmt="none", ecolor=COLOURS[0], capsize=2
            )
            _levels(panel, rows)
        else:
            panel.plot(heads, bleu, label="paper", **style)
        _title(panel, f"{pair}\n{test}" if ours else pair, source)
        _counts(panel, "encoder heads left", heads.max())
        panel.set_ylabel("BLEU")
    _shared_legend(figure, axes, 6)
    return figure


def _levels(panel: Axes, rows: pd.DataFrame) -> None:
    """BLEU of the model that was pruned and of the control, and 0.25 and 1 below the latter."""
    control, start = (float(rows[name].iloc[0]) for name in ("control_bleu", "start_bleu"))
    panel.axhline(
        start, color="black", linestyle="-.", linewidth=0.9, label="model that was pruned"
    )
    panel.axhline(control, color="black", linewidth=0.9, label="control, λ = 0")
    for limit, line in ((0.25, "--"), (1, ":")):
        words = f"control − {limit:g}"
        panel.axhline(control - limit, color="#6E6E6E", linestyle=line, linewidth=0.9, label=words)


def draw_kinds(points: pd.DataFrame) -> Figure:
    """Figure 9: heads left of each kind by heads pruned, a panel per pair, then the paper's two."""
    tasks = list(points.groupby(["source", "pair"], sort=False))
    figure, axes = panels(len(tasks))
    for panel, ((source, pair), rows) in zip(axes, tasks, strict=True):
        for kind, style in _KINDS.items():
            _mean_line(panel, rows[rows["kind"] == kind], {"label": SHORT[kind], **style})
        _title(panel, pair, source)
        _counts(panel, "heads pruned, of all kinds", rows["pruned"].max())
        _counts(panel, "heads left", rows["heads_left"].max(), "y")
    _shared_legend(figure, axes, len(_KINDS))
    return figure


def draw_layers(points: pd.DataFrame) -> Figure:
    """Figure 10: heads left by decoder layers; a row per pair and one for the paper's."""
    rows = list(points.groupby(["source", "pair"], sort=False))
    figure, axes = panels(2 * len(rows), columns=2)
    for place, ((source, pair), of_pair) in enumerate(rows):
        groups = list(of_pair["layers"].unique())
        for panel, kind in zip(axes[2 * place :], ("dec_self", "dec_enc"), strict=False):
            found = of_pair[of_pair["kind"] == kind]
            for number, (words, colour) in enumerate(
                zip(groups, colours(len(groups)), strict=True)
            ):
                style = _STYLES[number % len(_STYLES)] | {"color": colour}
                name = f"{'layers' if '–' in words else 'layer'} {words}"
                _mean_line(panel, found[found["layers"] == words], {"label": name, **style})
            _title(panel, f"{pair}: {_NAMES[kind]}", source)
            _counts(panel, f"{SHORT[kind]} heads pruned", found["pruned"].max())
            _counts(panel, "heads left", of_pair["heads_left"].max(), "y")
            panel.legend(fontsize="small", frameon=True)
    return figure


_NAMES = {"dec_self": "decoder self-attention", "dec_enc": "decoder-encoder"}


def _mean_line(panel: Axes, rows: pd.DataFrame, style: dict) -> None:
    """Means over seeds of one sweep, ± a standard deviation on both axes."""
    numbers = rows.astype({"pruned": float, "heads_left": float})
    of_run = numbers.groupby("point", sort=False)[["pruned", "heads_left"]]
    found = of_run.agg(["mean", "std"]).fillna(0)
    found = found.sort_values(("pruned", "mean"), kind="stable")
    across, up = found["pruned"], found["heads_left"]
    several = rows["seed"].nunique() > 1
    _line(panel, across["mean"], up["mean"], (up["std"], across["std"]) if several else (), style)


def _line(panel: Axes, across: pd.Series, up: pd.Series, ends: tuple, style: dict) -> None:
    """Points with a line through them; `ends` say how far bars reach, if there are any."""
    panel.plot(across, up, markersize=4.5, linewidth=1.3, **style)
    bars = {"fmt": "none", "ecolor": style["color"], "elinewidth": 1, "capsize": 2}
    if ends:
        panel.errorbar(across, up, *ends, **bars)


def _reach(rows: pd.DataFrame, name: str) -> list[pd.Series]:
    """How far `low` and `high` lie from a column, below it and above."""
    middle, low, high = (rows[each].astype(float) for each in (name, "low", "high"))
    return [(middle - low).clip(lower=0), (high - middle).clip(lower=0)]


def _title(panel: Axes, pair: str, source: str) -> None:
    words = [pair, _PAPER] if source == "paper" else [pair]
    panel.set_title("\n".join(words), loc="left", fontsize="medium")


def draw_methods(table: pd.DataFrame) -> Figure:
    """BLEU changes by heads left: a row per test set and scope, a panel per comparison.

    See `method_points`.
    """
    rows = list(table.groupby(["pair", "test_set", "scope"], sort=False))
    compared = [name for name in _COMPARED if name in set(table["panel"])]
    size = (max(4.2 * len(compared), 5.5), 3.2 * len(rows) + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(rows), len(compared), squeeze=False)
    of_start = run_styles(list(table.loc[table["panel"] == START, "contender"].unique()))
    for line, ((pair, test, scope), of_task) in zip(grid, rows, strict=True):
        for panel, comparison in zip(line, compared, strict=True):
            found = of_task[of_task["panel"] == comparison]
            if found.empty:
                panel.remove()
                continue
            _contenders(panel, found, of_start if comparison == START else _METHODS)
            words = f"{pair}, {test}\n{_SCOPES[scope]}, {_COMPARED[comparison]}"
            panel.set_title(words, loc="left", fontsize="medium")
    return figure


def _contenders(panel: Axes, rows: pd.DataFrame, styles: dict[str, dict]) -> None:
    """One comparison: a line for each contender; those at one number of heads side by side."""
    step = _APART * rows["heads"].max() if styles is _METHODS else 0
    for place, (name, style) in enumerate(styles.items()):
        found = rows[rows["contender"] == name]
        shifted = found.assign(heads_left=found["heads_left"] + step * place)
        words = f"from {name}" if styles is not _METHODS else name
        if len(found):
            of_way = shifted.sort_values("heads_left")
            ends = (_reach(of_way, "delta"),)
            _line(panel, of_way["heads_left"], of_way["delta"], ends, {"label": words, **style})
    panel.axhline(0, color="black", linewidth=0.8)
    _counts(panel, "heads left", rows["heads"].max())
    panel.set_ylabel("BLEU − that with all heads")
    panel.legend(fontsize="small", frameon=True)


_SCOPES = {"all": "all kinds", "enc_self": "encoder heads"}
_COMPARED = {TUNED: "fine-tuned", UNTUNED: "not fine-tuned", START: "gates, by start"}


_STEPS = [1, 2, 4, 8, 10]  # counts of heads are mostly powers of two
_APART = 0.012  # of an axis, between markers that would hide one another
_EDGE = 0.03  # of an axis, so that points at its ends are seen whole


def _counts(panel: Axes, words: str, largest: float, side: str = "x") -> None:
    """An axis of counts from 0 on; `side`: x or y."""
    end = max(float(largest), 1)
    panel.set(**{f"{side}lim": (-_EDGE * end, end * (1 + _EDGE)), f"{side}label": words})
    axis = {"x": panel.xaxis, "y": panel.yaxis}[side]
    axis.set_major_locator(MaxNLocator(7, integer=True, steps=_STEPS))


def _shared_legend(figure: Figure, axes: list[Axes], columns: int) -> None:
    """One legend above, with every label of any panel once."""
    found = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    keys = {"handles": list(found.values()), "labels": list(found)}
    figure.legend(**keys, loc="outside upper center", ncols=columns, frameon=False)
