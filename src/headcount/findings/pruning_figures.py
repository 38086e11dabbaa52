"""Voita's Figures 7, 9 and 10, and BLEU by number of heads for every way to choose them."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.findings.figures import COLOURS, colours
from headcount.findings.panels import SHORT, legend_above, panels
from headcount.findings.voita_comparison import START, TUNED, UNTUNED

_KINDS = {
    "enc_self": {"color": COLOURS[0], "marker": "o", "linestyle": "-"},
    "dec_self": {"color": COLOURS[1], "marker": "s", "linestyle": "--"},
    "dec_enc": {"color": COLOURS[2], "marker": "^", "linestyle": "-."},
}
_LAYERS = [
    {"marker": marker, "linestyle": line}
    for marker, line in (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"))
]
_METHODS = {
    "gates": {"color": COLOURS[0], "marker": "o"},
    "ranked": {"color": COLOURS[1], "marker": "s"},
    "drawn": {"color": COLOURS[2], "marker": "^"},
    "scratch": {"color": COLOURS[3], "marker": "D"},
}
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
        style |= {"markersize": 4.5, "linewidth": 1.3, "clip_on": False}
        heads, bleu = rows["heads_left"].astype(float), rows["bleu"].astype(float)
        if ours:
            ends = (bleu - rows["low"].astype(float), rows["high"].astype(float) - bleu)
            errors = [end.clip(lower=0) for end in ends]
            panel.errorbar(heads, bleu, errors, capsize=2, label="gates", **style)
            _levels(panel, rows)
        else:
            panel.plot(heads, bleu, label="paper", **style)
        panel.set_title("\n".join([pair, test if ours else _PAPER]), loc="left", fontsize="medium")
        _counts(panel, "encoder heads left", heads.max())
        panel.set_ylabel("BLEU")
    _shared_legend(figure, axes, 4)
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
        _counts_left(panel, rows)
    legend_above(figure, axes[0], len(_KINDS))
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
                style = {"color": colour, **_LAYERS[number % len(_LAYERS)]}
                name = f"{'layers' if '–' in words else 'layer'} {words}"
                _mean_line(panel, found[found["layers"] == words], {"label": name, **style})
            _title(panel, f"{pair}: {_NAMES[kind]}", source)
            _counts(panel, f"{SHORT[kind]} heads pruned", found["pruned"].max())
            _counts_left(panel, of_pair)
            panel.legend(fontsize="small", frameon=True)
    return figure


_NAMES = {"dec_self": "decoder self-attention", "dec_enc": "decoder-encoder"}


def _mean_line(panel: Axes, rows: pd.DataFrame, style: dict) -> None:
    """Means over seeds of one sweep, ± a standard deviation on both axes; the paper has no runs."""
    groups = rows.assign(point=rows["run"].where(rows["run"] != "", rows["pruned"]))
    of_run = groups.astype({"pruned": float, "heads_left": float}).groupby("point", sort=False)
    found = of_run[["pruned", "heads_left"]].agg(["mean", "std"]).fillna(0)
    found = found.sort_values(("pruned", "mean"), kind="stable")
    across, up = found["pruned"], found["heads_left"]
    bars = {"capsize": 2, "markersize": 4.5, "linewidth": 1.3, "clip_on": False}
    panel.errorbar(across["mean"], up["mean"], up["std"], across["std"], **bars, **style)


def _title(panel: Axes, pair: str, source: str) -> None:
    words = [pair, _PAPER] if source == "paper" else [pair]
    panel.set_title("\n".join(words), loc="left", fontsize="medium")


def draw_methods(table: pd.DataFrame) -> Figure:
    """BLEU lost by heads left, a panel per test set, scope and comparison; see `method_points`.

    Solid: fine-tuned; dotted: the start model's own weights.
    """
    tasks = list(table.groupby(["pair", "test_set", "scope", "panel"], sort=False))
    figure, axes = panels(len(tasks), width=4.8, height=3.4)
    starts = table.loc[table["panel"] == START, "contender"].unique()
    of_start = {
        name: {"color": colour, "marker": marker}
        for name, colour, marker in zip(starts, colours(len(starts)), "oPXv*<>" * 9, strict=False)
    }
    for panel, ((pair, test, scope, comparison), rows) in zip(axes, tasks, strict=True):
        styles = of_start if comparison == START else _METHODS
        for name, style in styles.items():
            for tuned, line in ((TUNED, "-"), (UNTUNED, ":")):
                found = rows[(rows["contender"] == name) & (rows["tuning"] == tuned)]
                words = f"{name}, untuned" if tuned == UNTUNED else name
                words = f"gates, from {name}" if comparison == START else words
                _lost(panel, found, {"linestyle": line, "label": words, **style})
        panel.axhline(0, color="black", linewidth=0.8)
        what = "by start" if comparison == START else "by method"
        panel.set_title(f"{pair}\n{test}, {scope}, {what}", loc="left", fontsize="medium")
        _counts(panel, "heads left, of the whole model", rows["heads"].max())
        panel.set_ylabel("BLEU − that with all heads")
        panel.legend(fontsize="small", frameon=True)
    return figure


def _lost(panel: Axes, rows: pd.DataFrame, style: dict) -> None:
    if rows.empty:
        return
    rows = rows.sort_values("heads_left")
    ends = (rows["lost"] - rows["low"], rows["high"] - rows["lost"])
    errors = [end.clip(lower=0) for end in ends]
    bars = {"capsize": 2, "markersize": 4.5, "linewidth": 1.3}
    panel.errorbar(rows["heads_left"], rows["lost"], errors, **bars, **style)


def _counts(panel: Axes, words: str, largest: float) -> None:
    panel.set_xlim(0, max(float(largest), 1))
    panel.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    panel.set_xlabel(words)


def _counts_left(panel: Axes, rows: pd.DataFrame) -> None:
    panel.set_ylim(0, max(float(rows["heads_left"].max()), 1))
    panel.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    panel.set_ylabel("heads left")


def _shared_legend(figure: Figure, axes: list[Axes], columns: int) -> None:
    """One legend above, with every label of any panel once."""
    found = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    keys = {"handles": list(found.values()), "labels": list(found)}
    figure.legend(**keys, loc="outside upper center", ncols=columns, frameon=False)
