"""Voita's Figure 6, what a gate's distribution is; and the authors' film as a still: gates over
training."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headcount.base.addresses import KINDS
from headcount.base.hard_concrete import HardConcrete
from headcount.base.settings.runs import SCOPES
from headcount.base.settings.train import GatesSettings
from headcount.findings import exhibits
from headcount.findings.figures import (
    COLOURS,
    GREY,
    SMALLEST,
    Drawn,
    colour_bar,
    is_first,
    panels,
    with_minus,
)
from headcount.findings.kinds import SCOPES as SCOPE_WORDS
from headcount.findings.kinds import SHORT, explain_kinds
from headcount.findings.published import voita
from headcount.findings.results import BASE, HEAD, KEYS, Results, gather
from headcount.findings.voita_pruning.measured import describe_pruning, pruned_models

_PAPER = HardConcrete(0.5, -0.1, 1.1)  # gives the printed masses
_LOCATIONS = {0.0: "-", 2.0: "--", -3.0: "-."}  # log α of the paper's three curves, and their lines
_VALUES = np.linspace(0, 1, 401)[1:-1]
_TALLEST = 4  # density drawn; that of Concrete has no upper end
_ROOM = 1.25  # end of an axis ÷ what is drawn, for a legend that hides nothing


@exhibits.figure("voita_fig6", needs=("pruned_runs",))
def fig6(results: Results) -> Drawn:
    """Figure 6: distribution of a gate."""
    gates: GatesSettings = results.settings["gates"]
    table = distributions(gates)
    return Drawn(
        _draw_distributions(table),
        table,
        "Distribution of one gate, in closed form: how Concrete becomes Hard Concrete when it is "
        "stretched beyond 0 and 1 and cut there (left), and Hard Concrete at three locations log "
        "α (right).",
        (
            "Lines: density (left scale; that of Concrete grows without end at 0 and 1, and is "
            "drawn up to 4). Bars: probability of exactly 0 and exactly 1 (right scale), beside "
            "the ends so that they can be told apart.",
            f"{voita.SOURCE} prints the masses in brackets; they belong to temperature "
            f"{_PAPER.temperature:g}, while its code trains with 0.33. This experiment has "
            f"{gates.temperature:g}.",
        ),
    )


@exhibits.figure("voita_gates", needs=("pruned_heads", "gates"), beside="voita_pruning")
def gates(results: Results) -> Drawn:
    """Gates over fine-tuning."""
    table = trajectories(results.files("gates"), pruned_models(results))
    return Drawn(
        _draw_gates(table),
        table,
        "Gates over fine-tuning, by what is gated and λ: probability that a gate is not 0, at "
        "every validation. A row is a head; titles say how many gated heads are left at the end.",
        (
            "Rows: kinds and their layers from the first (top) to the last, divided by lines.",
            explain_kinds(),
            *describe_pruning(results),
        ),
    )


def distributions(gates: GatesSettings) -> pd.DataFrame:
    """Figure 6's numbers: temperature, low, high, log_alpha, part, gate, value.

    Parts: `concrete` and `hard`, densities at a value of the gate; `mass`, the probability of
    exactly 0 and of exactly 1; `printed`, the masses that the paper prints, for its temperature.
    """
    ours = HardConcrete(gates.temperature, gates.stretch_low, gates.stretch_high)
    rows = []
    for family in dict.fromkeys([_PAPER, ours]):
        for place in _LOCATIONS:
            head = (family.temperature, family.low, family.high, place)
            parts = {"hard": family.hard_density(_VALUES, place)}
            if place == 0:
                parts["concrete"] = family.concrete_density(_VALUES, place)
            for part, heights in parts.items():
                rows += [(*head, part, *point) for point in zip(_VALUES, heights, strict=True)]
            masses = (float(family.p_zero(place)), float(family.p_one(place)))
            rows += [(*head, "mass", end, mass) for end, mass in enumerate(masses)]
    head = (_PAPER.temperature, _PAPER.low, _PAPER.high)
    for printed in voita.table("figure6").itertuples():
        end = 1 if printed.mass == "p_one" else 0
        rows.append((*head, printed.log_alpha, "printed", end, printed.value))
    columns = ["temperature", "low", "high", "log_alpha", "part", "gate", "value"]
    return pd.DataFrame(rows, columns=columns)


def _draw_distributions(table: pd.DataFrame) -> Figure:
    """Figure 6: a row per temperature; left Concrete and Hard Concrete, right three of the latter.

    Lines are densities (left scale), bars at the ends are probabilities (right scale).
    """
    families = list(table.groupby(["temperature", "low", "high"], sort=False))
    figure, axes = panels(2 * len(families), 2, 4.5, 3.5, margins=(0, 0.4))
    pairs = zip(axes[::2], axes[1::2], families, strict=True)
    for left, right, ((temperature, low, high), rows) in pairs:
        whose = "the paper's figure" if "printed" in set(rows["part"]) else "this experiment"
        _panel(left, rows[rows["log_alpha"] == 0])
        _panel(right, rows[rows["part"] != "concrete"])
        left.set_title(f"temperature {temperature:g}: {whose}", loc="left", fontsize="medium")
        stretch = with_minus(f"Hard Concrete, stretch {low:g} to {high:g}")
        right.set_title(stretch, loc="left", fontsize="medium")
    return figure


def _panel(panel: Axes, rows: pd.DataFrame) -> None:
    masses = panel.twinx()
    masses.grid(visible=False)
    masses.spines["right"].set_visible(True)
    concrete = rows[(rows["part"] == "concrete") & (rows["value"] <= _TALLEST)]
    if len(concrete):
        style = {"color": GREY, "linewidth": 1.6, "label": "Concrete, log α = 0"}
        panel.plot(concrete["gate"], concrete["value"], ":", **style)
    curves = rows[rows["part"] != "concrete"].groupby("log_alpha", sort=False)
    for place, (location, found) in enumerate(curves):
        parts = dict(list(found.groupby("part")))
        colour = COLOURS[list(_LOCATIONS).index(location)]
        style = {"color": colour, "linestyle": _LOCATIONS[location], "linewidth": 1.6}
        words = with_minus(f"Hard, log α = {location:g}: {_masses(parts)}")
        panel.plot(parts["hard"]["gate"], parts["hard"]["value"], label=words, **style)
        outward = np.array([-1, 1]) * (0.02 + 0.035 * place)
        masses.bar(parts["mass"]["gate"] + outward, parts["mass"]["value"], 0.03, color=colour)
    panel.set(xlim=(-0.14, 1.14), ylim=(0, _TALLEST * _ROOM), xlabel="gate", ylabel="density")
    masses.set(ylim=(0, _ROOM), ylabel="probability of 0 and of 1 (bars)")
    masses.set_yticks(np.linspace(0, 1, 5))
    panel.set_yticks(range(_TALLEST + 1))
    panel.legend(loc="upper center", fontsize=SMALLEST, frameon=True)


def _masses(parts: dict[str, pd.DataFrame]) -> str:
    zero, one = parts["mass"]["value"]
    words = f"P(0) {zero:.2f}, P(1) {one:.2f}"
    if "printed" in parts:
        zero, one = parts["printed"]["value"]
        words += f" (printed {zero:.2f}, {one:.2f})"
    return words


def trajectories(files: list[Path], models: pd.DataFrame) -> pd.DataFrame:
    """Every gate at every validation: pair, run, seed, scope, start, lambda, then columns of gates.

    These are step, kind, layer, head, p_open, gate. `p_open`: probability that the gate is not 0;
    `gate`: its test-time value. Runs stand by scope,
    start and λ; only kinds of the run's scope are there.
    """
    told = models[[*KEYS, "scope", "start", "lambda"]]
    table = gather(files, ["step", *HEAD, "p_zero", "gate"]).merge(told, "left", KEYS)
    table["p_open"] = 1 - table["p_zero"]
    pairs = zip(table["kind"], table["scope"], strict=True)
    gated = table[[kind in SCOPES[scope] for kind, scope in pairs]]
    order = ["pair", "scope", "start", "lambda", "seed"]
    kept = gated.sort_values(order, kind="stable", ignore_index=True)
    return kept[[*KEYS, "scope", "start", "lambda", "step", *HEAD, "p_open", "gate"]]


def _draw_gates(table: pd.DataFrame) -> Figure:
    """A heat map per run and seed: heads by updates, colour the probability of being open."""
    runs = list(table.groupby(KEYS, sort=False))
    figure, axes = panels(len(runs), 4, 2.5, 2.2, margins=(1.2, 0.4))
    several = table["pair"].nunique() > 1
    for panel, ((pair, _, seed), rows) in zip(axes, runs, strict=True):
        image = _trajectory(panel, rows)
        last = rows[rows["step"] == rows["step"].max()]
        scope, start, price = last.iloc[0][["scope", "start", "lambda"]]
        first = f"{SCOPE_WORDS[scope]}, λ = {price:g}"
        first += "" if start == BASE else f"\nfrom {start}"
        left = f"seed {seed}: {(last['gate'] != 0).sum()} of {len(last)} left"
        words = "\n".join([*([pair] if several else []), first, left])
        panel.set_title(words, loc="left", fontsize="small")
        if is_first(panel):
            panel.set_ylabel("heads, by kind and layer", fontsize="small")
    colour_bar(figure, image, "probability that the gate is not 0")
    return figure


def _trajectory(panel: Axes, rows: pd.DataFrame) -> QuadMesh:
    """One run; a column per validation, centred on its update."""
    wide = rows.pivot(index=HEAD, columns="step", values="p_open")
    order = sorted(wide.index, key=lambda head: (KINDS.index(head[0]), *head[1:]))
    steps = np.array(wide.columns, dtype=float)
    middles = (steps[1:] + steps[:-1]) / 2
    edges = [steps[0], *middles, steps[-1]] if len(steps) > 1 else [steps[0], steps[0] + 1]
    style = {"cmap": "viridis", "vmin": 0, "vmax": 1, "rasterized": True}
    image = panel.pcolormesh(edges, range(len(order) + 1), wide.loc[order], **style)
    panel.invert_yaxis()
    panel.grid(visible=False)
    panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    panel.set_xlabel("updates", fontsize="small")
    kinds = [head[0] for head in order]
    firsts = {kind: kinds.index(kind) for kind in KINDS if kind in kinds}
    for place in range(1, len(order)):
        if order[place][:2] != order[place - 1][:2]:  # another layer
            wide_line = 1.6 if place in firsts.values() else 0.4
            panel.axhline(place, color="white", linewidth=wide_line)
    middle = [first + kinds.count(kind) / 2 for kind, first in firsts.items()]
    panel.set_yticks(middle, [SHORT[kind] for kind in firsts], fontsize="small")
    panel.tick_params(axis="x", labelsize="small")
    return image
