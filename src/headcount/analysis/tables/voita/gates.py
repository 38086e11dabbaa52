"""Gates and heads left in pruned runs: figures 6, 7, 9 and 10 of Voita et al., ways to choose."""

import numpy as np
import pandas as pd

from headcount.analysis.frames import BASE, RUN, FrameOf, Settings, grouped, with_paper
from headcount.analysis.published import voita
from headcount.analysis.scores import main_metric, over_seeds
from headcount.analysis.stats import speedups
from headcount.analysis.tables.voita import pruning
from headcount.analysis.tables.voita.pruning import records
from headcount.base.hard_concrete import HardConcrete

_PAPER = HardConcrete(0.5)  # gives the masses that the paper prints
_LOCATIONS = (0.0, 2.0, -3.0)  # log α of the curves of the paper
_VALUES = np.linspace(0, 1, 401)[1:-1]
_SETUP = ["pair", "seed", "phase", "batch_size"]


def distributions(settings: Settings) -> pd.DataFrame:
    """Return densities of gates and probabilities of exactly 0 and 1 (Voita et al., figure 6)."""
    gates = settings["gates"]
    ours = HardConcrete(gates.temperature)
    curves = [
        pd.DataFrame({"log_alpha": place, "part": part, "gate": at, "value": value}).assign(
            temperature=family.temperature, low=family.low, high=family.high
        )
        for family in dict.fromkeys([_PAPER, ours])
        for place in _LOCATIONS
        for part, at, value in (
            ("hard", _VALUES, family.hard_density(_VALUES, place)),
            ("concrete", _VALUES, family.concrete_density(_VALUES, place)),
            ("mass", [0, 1], [family.p_zero(place), family.p_one(place)]),
        )
        if place == 0 or part != "concrete"
    ]
    printed = voita.table("figure6").assign(part="printed", temperature=0.5, low=-0.1, high=1.1)
    table = pd.concat([*curves, printed], ignore_index=True)
    density = table["part"].isin(["hard", "concrete"])
    return table.assign(quantity=np.where(density, "density", "probability of 0 and of 1"))


def encoder_points(runs: FrameOf[records]) -> pd.DataFrame:
    """Return means over seeds of gates runs on encoder self-attention, then the paper's points."""
    gates = runs[
        (runs["method"] == "gates") & (runs["scope"] == "enc_self") & (runs["start"] == BASE)
    ]
    names = ["scope_left", "start_score", "control_score"]
    points = over_seeds(gates, ["pair", "test_set", "run", "lambda"], means=names)
    points = points.rename(columns={"scope_left": "heads_left"})
    points = points.sort_values("heads_left", ascending=False, kind="stable")
    return with_paper(points, voita.table("figure7", "score"), main_metric(runs))


def points_left(layers: FrameOf[pruning.layers], figure: str, by: list[str]) -> pd.DataFrame:
    """Return heads left by heads pruned, of gates runs on all attention types and of the paper."""
    left = layers.groupby(RUN)["heads_left"].transform("sum")
    last = layers.loc[layers["kind"] == "dec_self", "layer"].max()
    groups = [_group(layer, last) for layer in layers["layer"]]
    ours = layers.assign(left=left, layers=groups, point=layers["run"])
    ours = ours[(ours["method"] == "gates") & (ours["scope"] == "all") & (ours["start"] == BASE)]
    ours = ours[(ours["kind"] != "enc_self") | ("layers" not in by)]
    ours = ours.sort_values("left", ascending=False, kind="stable")
    key, counts = [*RUN, "lambda", "point", *by], ["heads", "heads_left"]
    ours = ours.groupby(key, sort=False)[counts].sum().reset_index()
    paper = voita.table(figure, "heads_left").rename(columns={"pruned": "point"})
    paper["heads"] = paper.groupby(by)["heads_left"].transform("max")
    points = with_paper(ours, paper)
    model = ["source", *RUN, "point", *by[:-1]]
    sums = grouped(points, model)[counts].transform("sum")
    points["pruned"] = sums["heads"] - sums["heads_left"]
    same = grouped(points, ["source", "pair", "point", *by])
    mean, spread = (same["heads_left"].transform(name) for name in ("mean", "std"))
    ends = {"low": mean - spread.fillna(0), "high": mean + spread.fillna(0)}
    return points.assign(mean_pruned=same["pruned"].transform("mean"), mean_left=mean, **ends)


def _group(layer: int, last: int) -> str:
    """Return the name of a layer, or of two layers in a decoder with more than three."""
    first = layer - layer % 2
    return f"{first}–{first + 1}" if first < last > 2 else f"{layer}"


def trajectories(gates: pd.DataFrame, models: FrameOf[pruning.models]) -> pd.DataFrame:
    """Return every gate at every validation, and the number of heads left at the end."""
    table = gates.merge(models[[*RUN, "scope", "start", "lambda", "scope_left"]], on=RUN)
    table = table.assign(p_open=1 - table["p_zero"])
    order = ["pair", "scope", "start", "lambda", "seed"]
    return table.sort_values(order, kind="stable", ignore_index=True)


def timed(pruned_speed: pd.DataFrame, models: FrameOf[pruning.models]) -> pd.DataFrame:
    """Return the time of a sentence of every timed model, by phase and batch size."""
    raw = pruned_speed.drop(columns="run")
    raw["milliseconds"] = 1000 * raw["seconds"] / raw["sentences"]
    raw["steps"] = raw["steps"] / raw["sentences"]
    by = [*_SETUP, "model", "heads_left", "parameters", "file_bytes", "steps"]
    times = raw.groupby(by, sort=False)["milliseconds"]
    table = times.agg(repeats="size", milliseconds="median", low="min", high="max").reset_index()
    table["speed"] = table["steps"] / table["milliseconds"]
    whole = [name for name in raw["model"].unique() if name not in set(models["run"])]
    whole = BASE if BASE in whole or not whole else whole[0]
    table = speedups(table, raw, _SETUP, whole).rename(columns={"model": "run"})
    return table.merge(models[[*RUN, "method", "scope"]], "left", RUN)
