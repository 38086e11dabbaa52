"""Pruned models: their settings, the heads that are left, their updates, and notes on them."""

import pandas as pd

from headcount.analysis.captions import note, scored, setting
from headcount.analysis.frames import BASE, HEAD, RUN, Facts, FrameOf, Runs, Settings, refuse
from headcount.analysis.scores import main_scores
from headcount.base.addresses import SCOPES
from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.base.settings.training_runs import label

_DECIDED = 0.9  # a gate has decided if its probability of 0, or of 1, is above this
_MODEL = [*RUN, "how", "scope", "lambda", "start", "control", "gates_run"]


def layers(kept: pd.DataFrame, pruned_runs: Runs, settings: Settings) -> pd.DataFrame:
    """Return heads and heads left in every layer of every pruned model, with its settings.

    `gated`: the layer could lose heads. Raises UserError for files of other models.
    """
    grid, gates = settings["model"].grid, kept[kept["statistic"] == "gate"]
    rows = [
        (name, run.word, run.scope, run.lambda_, run.start, label(run.control))
        + (label(run.gates_run), kind, layer, span.stop - span.start, kind in SCOPES[run.scope])
        for name, run in pruned_runs.items()
        for kind, layer, span in grid.layers()
    ]
    layers = pd.DataFrame(rows, columns=["run", *_MODEL[3:], "kind", "layer", "heads", "gated"])
    models = gates[RUN].value_counts(sort=False).rename("gates").reset_index()
    refuse(
        models[(models["gates"] != grid.size) | ~models["run"].isin(pruned_runs)],
        "heads.csv of {run} ({pair}, seed {seed}): expected a run.json, and a gate for each of "
        f"{grid.size} heads, found {{gates}} gates; make prune/ again",
    )
    left = gates[gates["value"] != 0].groupby([*RUN, "kind", "layer"]).size().rename("heads_left")
    table = models[RUN].merge(layers, on="run").join(left, on=left.index.names)
    return table.fillna({"heads_left": 0}).astype({"heads_left": int})


def models(layers: FrameOf[layers], kept: pd.DataFrame) -> pd.DataFrame:
    """Return one pruned model a row, with the heads that it has left.

    Raises UserError for another number of heads than the gates run's, and without the control.
    """
    counts, scope = ["heads", "heads_left"], ["scope_heads", "scope_left"]
    by_kind = layers.assign(text=layers["heads_left"].astype(str)).groupby([*_MODEL, "kind"])
    left = by_kind["heads_left"].sum()
    parts = [
        layers[layers["gated"]].groupby(_MODEL)[counts].sum().set_axis(scope, axis=1),
        left.unstack(),
        (left / by_kind["heads"].sum()).unstack().add_suffix("_share"),
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
    refuse(
        models[wrong],
        "{run} ({pair}, seed {seed}) has {heads_left} heads: expected as many in {gates_run}, and "
        "the run {control}; add these runs to `pruned`, or make prune/ again",
    )
    return models


def updates(
    models: FrameOf[models], start_curves: pd.DataFrame, pruned_curves: pd.DataFrame
) -> pd.DataFrame:
    """Return pruned models with updates of their own, of their start and of their gates run."""
    last = pd.concat([start_curves, pruned_curves]).groupby(RUN)["step"].max()
    for name, run in (("updates", "run"), ("updates_before", "start"), ("with_gates", "gates_run")):
        models = models.join(last.rename(name), on=["pair", run, "seed"])
    models.loc[models["start"] == RANDOM_WEIGHTS, "updates_before"] = 0
    return models


def scores(start_scores: Facts, pruned_scores: Facts) -> pd.DataFrame:
    """Return scores of pruned models and of the models that were pruned."""
    scores = main_scores([*start_scores, *pruned_scores])
    return scores[[*RUN, "test_set", "score", "signature"]]


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
    spent = [("start", models["updates_before"]), *models.groupby("how")["updates"]]
    numbers = (" or ".join(f"{n:,.0f}" for n in sorted(values.unique())) for _, values in spent)
    texts = (f"{name} {number}" for (name, _), number in zip(spent, numbers, strict=True))
    return f"Updates: {', '.join(texts)}."


@note
def unequal_updates(models: FrameOf[updates], settings: Settings) -> str:
    """Return a warning if models from scratch had other updates than pruned ones in total."""
    scratch = models[models["how"] == "scratch"]
    equal = (scratch["updates"] == scratch["updates_before"] + scratch["with_gates"]).all()
    text = "Models from scratch had not as many updates as the start and the pruning together. "
    text += "Their distance from pruned models is due to updates as well as to heads."
    return text * (len(scratch) > 0 and not (equal and settings["model"].imported is None))


@note
def untuned_sentences(untuned_facts: Facts) -> str:
    """Return sentences on the test sets of models that were masked without fine-tuning."""
    return f"Untuned: {scored(untuned_facts)}" if untuned_facts else ""
