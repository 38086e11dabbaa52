"""Pruned models: heads left, scores, and other ways to choose heads (Voita et al.)."""

from pathlib import Path

import numpy as np
import pandas as pd

from headcount.analysis import frames
from headcount.analysis.captions import note, scored, setting
from headcount.analysis.frames import BASE, HEAD, RUN, Facts, FrameOf, Runs, Settings
from headcount.analysis.published import voita
from headcount.analysis.scores import DIFFERENCE, compare, main_metric, main_scores
from headcount.base.addresses import KINDS, SCOPES
from headcount.base.settings.runs import RANDOM_WEIGHTS

_DECIDED = 0.9  # a gate has decided if its probability of 0, or of 1, is above this
_MODEL = [*RUN, "method", "scope", "lambda", "start", "control", "gates_run"]
_ORDER = {"gates": 0, "ranked": 1, "drawn": 2, "scratch": 3, "subset": 4}


def layers(kept: pd.DataFrame, pruned_runs: Runs, settings: Settings) -> pd.DataFrame:
    """Return heads, heads left and settings of every layer; `gated`: it could lose heads."""
    grid, gates = settings["model"].grid, kept[kept["statistic"] == "gate"]
    rows = [
        (name, run.word, run.scope, run.lambda_, run.start, run.control.label)
        + (run.gates_run.label, kind, layer, span.stop - span.start, kind in SCOPES[run.scope])
        for name, run in pruned_runs.items()
        for kind, layer, span in grid.layers()
    ]
    layers = pd.DataFrame(rows, columns=["run", *_MODEL[3:], "kind", "layer", "heads", "gated"])
    models = gates[RUN].value_counts(sort=False).rename("gates").reset_index()
    frames.refuse(
        models[(models["gates"] != grid.size) | ~models["run"].isin(pruned_runs)],
        "heads.csv of {run} ({pair}, seed {seed}): expected a run.json, and a gate for each of "
        f"{grid.size} heads, found {{gates}} gates; make prune/ again",
    )
    left = gates[gates["value"] != 0].groupby([*RUN, "kind", "layer"]).size().rename("heads_left")
    table = models[RUN].merge(layers, on="run").join(left, on=left.index.names)
    return table.fillna({"heads_left": 0}).astype({"heads_left": int})


def models(layers: FrameOf[layers], kept: pd.DataFrame) -> pd.DataFrame:
    """Return one pruned model a row, with the heads that it has left."""
    counts, scope = ["heads", "heads_left"], ["scope_heads", "scope_left"]
    by_kind = layers.assign(text=layers["heads_left"].astype(str)).groupby([*_MODEL, "kind"])
    left = by_kind["heads_left"].sum()
    parts = [
        layers[layers["gated"]].groupby(_MODEL)[counts].sum().set_axis(scope, axis=1),
        left.unstack(),
        by_kind["text"].agg(" ".join).unstack().add_suffix("_layers"),
    ]
    models = layers.groupby(_MODEL, sort=False)[counts].sum().join(parts).reset_index()
    chances = kept[kept["statistic"].isin(["p_zero", "p_one"])]
    decided = chances.groupby([*RUN, *HEAD])["value"].max() > _DECIDED
    models = models.join(decided.groupby(RUN).mean().rename("polarised"), on=RUN)
    for name in ("gates_run", "control"):
        left = models.set_index(RUN)["heads_left"].rename(f"left_{name}")
        models = models.join(left, on=["pair", name, "seed"])
    wrong = models["left_control"].isna() | (models["left_gates_run"] != models["heads_left"])
    frames.refuse(
        models[wrong],
        "{run} ({pair}, seed {seed}) has {heads_left} heads: expected as many in {gates_run}, and "
        "the run {control}; add these runs to `pruned`, or make prune/ again",
    )
    return models


def updates(
    models: FrameOf[models], start_curves: pd.DataFrame, pruned_curves: pd.DataFrame
) -> pd.DataFrame:
    """Return pruned models with updates of their own and of their start."""
    last = pd.concat([start_curves, pruned_curves]).groupby(RUN)["step"].max()
    for name, run in (("updates", "run"), ("updates_before", "start")):
        models = models.join(last.rename(name), on=["pair", run, "seed"])
    models.loc[models["start"] == RANDOM_WEIGHTS, "updates_before"] = 0
    return models


def scores(start_scores: Facts, pruned_scores: Facts) -> pd.DataFrame:
    """Return scores of pruned models and of the models that were pruned."""
    scores = main_scores([*start_scores, *pruned_scores])
    return scores[[*RUN, "test_set", "metric", "score", "signature"]]


def with_all_heads(models: pd.DataFrame) -> pd.DataFrame:
    """Return pair, run and seed of models before pruning. For random weights, the baseline."""
    starts = models[["pair", "start", "seed"]].set_axis(RUN, axis=1)
    return starts.replace({"run": {RANDOM_WEIGHTS: BASE}}).drop_duplicates(ignore_index=True)


@note
def gates_setting(models: FrameOf[models], settings: Settings) -> list[str]:
    """Return sentences on λ, on the gates, and on the models that were pruned."""
    gates = settings["gates"]
    return [
        f"λ: penalty of heads (nats per target token and head). Gates: {gates.updates} updates, "
        f"temperature {gates.temperature:g}, log α at the start {gates.init}, rate {gates.lr:g} "
        f"({gates.lr_schedule}).",
        *setting(with_all_heads(models), settings),
    ]


@note
def updates_spent(models: FrameOf[updates]) -> str:
    """Return a sentence on the updates of the starts and of every way to prune."""
    spent = [("start", models["updates_before"]), *models.groupby("method")["updates"]]
    numbers = (" or ".join(f"{n:,.0f}" for n in sorted(values.unique())) for _, values in spent)
    texts = (f"{name} {number}" for (name, _), number in zip(spent, numbers, strict=True))
    return f"Updates: {', '.join(texts)}."


@note
def untuned_sentences(untuned_facts: Facts) -> str:
    """Return sentences on the test sets of models that were masked without fine-tuning."""
    return f"Untuned: {scored(untuned_facts)}" if untuned_facts else ""


def records(
    models: FrameOf[models],
    scores: FrameOf[scores],
    pruned_translations: list[Path],
    references: list[Path],
) -> pd.DataFrame:
    """Return one pruned run on one test set a row, with its difference to the control."""
    scores = scores.drop(columns="signature")
    table = models.merge(scores, "left", on=RUN)
    for name in ("start", "control"):
        other = scores[[*RUN, "test_set", "score"]]
        other = other.rename(columns={"run": name, "score": f"{name}_score"})
        table = table.merge(other, "left", ["pair", name, "seed", "test_set"])
    frames.refuse(
        table[table["control_score"].isna()],
        "expected bleu.json of {run} and of {control} ({pair}, seed {seed}); score them again",
    )
    return compare(table.assign(reference_run=table["control"]), pruned_translations, references)


def untuned_models(
    models: FrameOf[models], untuned: pd.DataFrame, settings: Settings
) -> pd.DataFrame:
    """Return starts without fine-tuning, with as many heads left as a gates run, else UserError."""
    gates = models[[*RUN, "scope", "lambda", "scope_heads", "scope_left", "heads_left"]]
    gates = gates.set_axis(["pair", "gates_run", *gates.columns[2:-1], "expected"], axis=1)
    rows = untuned.rename(columns={"matched_run": "gates_run", "order": "contender"})
    rows = rows.merge(gates, on=["pair", "gates_run", "seed"])
    rows["heads_left"] = settings["model"].grid.size - rows["heads_masked"]
    frames.refuse(
        rows[rows["heads_left"] != rows["expected"]],
        "untuned_masking.csv of {pair}, {run}, seed {seed}: as {gates_run} expected {expected} "
        "heads left, found {heads_left}; run untuned_masking again",
    )
    return rows.assign(reference_run=rows["run"], comparison="untuned")


def few_heads(
    models: FrameOf[updates],
    scores: FrameOf[scores],
    start_curves: pd.DataFrame,
    settings: Settings,
) -> pd.DataFrame:
    """Return scores of models with few heads, fine-tuned with gates and trained from scratch."""
    scratch, random = models["method"] == "scratch", models["start"] == RANDOM_WEIGHTS
    gates = pd.MultiIndex.from_frame(models[["pair", "gates_run", "seed"]])
    chosen = models["method"].isin(["gates", "scratch"])
    chosen &= (models["scope"] == "all") | gates.isin(gates[scratch])
    training = np.select([scratch, random], ["scratch", "gates from random weights"], "trained")
    before = models["updates_before"].mask(scratch, 0)
    models = models.assign(training=training, updates_before=before)[chosen]
    grid, starts = settings["model"].grid, with_all_heads(models)
    full = {kind: sum(grid.counts[kind]) for kind in KINDS} | {"heads_left": grid.size}
    starts = starts.join(start_curves.groupby(RUN)["step"].max().rename("updates"), on=RUN)
    starts = starts.assign(start=starts["run"], training="none", updates_before=0, **full)
    printed = voita.table("table2", "score").rename(columns={"heads": "printed"})
    printed = printed.fillna({"training": "none"})
    heads = printed["printed"].str.split("/", expand=True).astype(int).set_axis(KINDS, axis=1)
    printed = printed.join(heads).assign(heads_left=heads.sum(axis=1), signature=voita.PAPER.metric)
    table = pd.concat([starts, models]).merge(scores, on=RUN)
    return frames.with_paper(table.assign(printed=None), printed, main_metric(table))


def comparison(
    runs: FrameOf[records],
    untuned: FrameOf[untuned_models],
    pruned_translations: list[Path],
    references: list[Path],
) -> pd.DataFrame:
    """Return models that are compared with a gates run of λ > 0, one on one test set a row.

    Comparison `tuned`: ways to choose as many heads. `untuned`: the same without fine-tuning.
    `start`: gates runs of one λ from different starts, of which one is the baseline.
    `reference_run`: the run whose score is subtracted.
    """
    runs = runs.assign(control_delta=runs["delta"], place=runs["method"].map(_ORDER))
    penalised, untuned = runs[runs["lambda"] > 0], untuned[untuned["lambda"] > 0]
    gates = penalised[penalised["method"] == "gates"]
    alike = [gates[name] for name in ("pair", "scope", "lambda", "seed")]
    bases = gates["run"].where(gates["start"] == BASE).groupby(alike).transform("first")
    tuned = _contest(penalised, "tuned", "method", penalised["gates_run"])
    start = _contest(gates, "start", "start", bases)
    table = pd.concat([tuned, untuned, start], ignore_index=True)
    wanted = table.dropna(subset="reference_run").query("comparison != 'untuned'")
    compared = compare(wanted, pruned_translations, references).set_axis(wanted.index)
    table.loc[wanted.index, DIFFERENCE] = compared[DIFFERENCE]
    return table


def _contest(rows: pd.DataFrame, comparison: str, contender: str, bases: pd.Series) -> pd.DataFrame:
    """Return the models that are compared with a run of `bases`, if they are several."""
    group = ["pair", "gates_run", "lambda", "seed"]
    rows = rows.assign(comparison=comparison, contender=rows[contender], gates_run=bases)
    rows = rows[rows.groupby(group)["run"].transform("nunique") > 1]
    first = [rows.groupby(group, sort=False).ngroup(), pd.factorize(rows["test_set"])[0]]
    rows = rows.iloc[np.lexsort([rows["place"], *reversed(first)])]
    against = rows["gates_run"].where(rows["run"] != rows["gates_run"])
    return rows.drop(columns=DIFFERENCE).assign(reference_run=against)
