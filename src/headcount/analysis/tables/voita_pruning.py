"""Pruned runs: their scores, where BLEU falls, and other ways to choose heads (Voita et al.)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from headcount.analysis.cells import mean_count
from headcount.analysis.frames import BASE, RUN, grouped, with_paper
from headcount.analysis.pruned import PrunedModels, Updates, refuse, with_all_heads
from headcount.analysis.published import voita
from headcount.analysis.scores import compare, main_scores
from headcount.base.addresses import KINDS
from headcount.base.settings.runs import RANDOM_WEIGHTS

LIMITS = (0.25, 1.0)
"""Losses of BLEU, in points."""

_ORDER = {"gates": 0, "ranked": 1, "drawn": 2, "scratch": 3, "subset": 4}
_SWEEP = ["pair", "scope", "start", "seed"]
_TEST = [*RUN, "test_set"]


def scored_models(
    models: PrunedModels, start_scores: list[dict[str, Any]], pruned_scores: list[dict[str, Any]]
) -> pd.DataFrame:
    """Return one pruned model on one test set a row, beside the scores of start and control.

    `start_score` is missing for random weights. Raises UserError for another missing score.
    """
    scores = main_scores([*start_scores, *pruned_scores])[[*_TEST, "score"]]
    table = models.merge(scores, "left", on=RUN)
    for name in ("start", "control"):
        other = scores.rename(columns={"run": name, "score": f"{name}_score"})
        table = table.merge(other, "left", ["pair", name, "seed", "test_set"])
    no_start = table["start_score"].isna() & (table["start"] != RANDOM_WEIGHTS)
    refuse(
        table[table[["score", "control_score"]].isna().any(axis=1) | no_start],
        "expected bleu.json of {run}, {control} and {start} ({pair}, seed {seed}), with the same "
        "test sets; score them again",
    )
    return table


Scored = Annotated[pd.DataFrame, scored_models]


def untuned_models(
    models: PrunedModels, untuned: pd.DataFrame, settings: Mapping[str, Any]
) -> pd.DataFrame:
    """Return starts without fine-tuning, with as many heads left as a gates run has.

    Raises UserError for another number.
    """
    names = {"run": "gates_run", "heads_left": "expected"}
    gates = models.loc[models["how"] == "gates", [*RUN, "scope", "lambda", "heads_left"]]
    rows = untuned.rename(columns={"as_run": "gates_run", "order": "contender"})
    rows = rows.merge(gates.rename(columns=names), on=["pair", "gates_run", "seed"])
    rows["heads_left"] = settings["model"].grid.size - rows["heads_masked"]
    refuse(
        rows[rows["heads_left"] != rows["expected"]],
        "untuned_masking.csv of {pair}, {run}, seed {seed}: as {gates_run} expected {expected} "
        "heads left, found {heads_left}; run untuned_masking again",
    )
    return rows.assign(against=rows["run"], comparison="untuned")


Untuned = Annotated[pd.DataFrame, untuned_models]


def contests(rows: Scored, untuned: Untuned) -> pd.DataFrame:
    """Return penalised models that are compared, in groups whose first one is a gates run.

    Comparison `tuned`: ways to choose as many heads. Comparison `start`: gates runs of one λ from
    different starts, of which one is the baseline. `against` is missing for the first of a group.
    Without any comparison, all models are there.
    """
    rows = rows.assign(place=rows["how"].map(_ORDER))
    penalised = rows[rows["lambda"] > 0]
    gates = penalised[penalised["how"] == "gates"]
    alike = [gates[name] for name in ("pair", "scope", "lambda", "seed")]
    bases = gates["run"].where(gates["start"] == BASE).groupby(alike).transform("first")
    tuned = _contest(penalised, "tuned", "how", penalised["gates_run"])
    table = pd.concat([tuned, _contest(gates, "start", "start", bases)])
    if len(table) or (untuned["lambda"] > 0).any():
        return table
    return _contest(rows, "tuned", "how", rows["gates_run"], least=1)


def _contest(
    rows: pd.DataFrame, comparison: str, contender: str, bases: pd.Series, least: int = 2
) -> pd.DataFrame:
    """Return the models that are compared with a run of `bases`, if they are `least` or more."""
    group = ["pair", "gates_run", "lambda", "seed"]
    rows = rows.assign(comparison=comparison, contender=rows[contender], gates_run=bases)
    rows = rows[rows.groupby(group)["run"].transform("nunique") >= least]
    first = [rows.groupby(group, sort=False).ngroup(), pd.factorize(rows["test_set"])[0]]
    rows = rows.iloc[np.lexsort([rows["place"], *reversed(first)])]
    return rows.assign(against=rows["gates_run"].where(rows["run"] != rows["gates_run"]))


Contests = Annotated[pd.DataFrame, contests]


def tested(
    rows: Scored, compared: Contests, pruned_translations: list[Path], references: list[Path]
) -> pd.DataFrame:
    """Return differences of all models to their controls, and of contenders to gates runs."""
    pairs = pd.concat([rows.assign(against=rows["control"]), compared.dropna(subset="against")])
    pairs = pairs[[*_TEST, "against"]].drop_duplicates()
    return compare(pairs, pruned_translations, references)


Tested = Annotated[pd.DataFrame, tested]


def records(rows: Scored, differences: Tested) -> pd.DataFrame:
    """Return one pruned run on one test set a row, with its difference to the control."""
    return rows.assign(against=rows["control"]).merge(differences, on=[*_TEST, "against"])


Records = Annotated[pd.DataFrame, records]


def falls(runs: Records, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return at how many heads a sweep over λ first falls more than a limit below its control.

    A row is a sweep, a test set and a limit. `falls_at`, `lambda` and the difference are of the
    first run below the limit, `holds_at` is of the run before it. Shares of heads left are means
    over the `runs_shorn` runs that lost a head, for the scope `all`. `enc_self_lowest` counts the
    runs in which encoder self-attention has the smallest share.
    """
    counts = settings["model"].grid.counts
    totals = [max(sum(counts[kind]), 1) for kind in KINDS]
    rows = []
    for key, sweep in grouped(runs[runs["how"] == "gates"], _SWEEP):
        # The control stands first even where another run has as many heads, or more.
        sweep = sweep.assign(penalised=sweep["lambda"] > 0).sort_values(
            ["penalised", "scope_left", "lambda"], ascending=[True, False, True], kind="stable"
        )
        facts = dict(zip(_SWEEP, key, strict=True)) | _shares(sweep.drop_duplicates("run"), totals)
        for test, of_test in sweep.groupby("test_set", sort=False):
            rows += [facts | {"test_set": test} | _fall(of_test, limit) for limit in LIMITS]
    return pd.DataFrame(rows)


def _fall(sweep: pd.DataFrame, limit: float) -> dict[str, Any]:
    """Return the first run below the limit, all missing without one, and the run before it."""
    sweep = sweep.reset_index(drop=True)
    place = min(sweep.index[sweep["delta"] < -limit], default=len(sweep))
    held, fell = sweep.iloc[place - 1], sweep.reindex([place]).iloc[0]
    names = ["lambda", "delta", "delta_low", "delta_high", "p"]
    return fell[names].to_dict() | {
        "limit": limit,
        "holds_at": held["scope_left"],
        "holds_delta": held["delta"],
        "falls_at": fell["scope_left"],
        "signature": held["signature"],
    }


def _shares(models: pd.DataFrame, totals: list[int]) -> dict[str, Any]:
    """Return mean shares of heads left by attention type; the first model is the control."""
    control, shorn = models.iloc[0], models.iloc[1:].query("scope_left < scope_heads")
    shares = shorn.loc[shorn["scope"] == "all", list(KINDS)] / totals
    mean, lowest = shares.mean(), shares["enc_self"] < shares[list(KINDS[1:])].min(axis=1)
    return mean.add_suffix("_share").to_dict() | {
        "runs": len(models) - 1,
        "scope_heads": control["scope_heads"],
        "runs_shorn": len(shorn),
        "first_kind": " and ".join(mean.index[mean == mean.min()]) or None,
        "enc_self_lowest": lowest.sum() if len(shares) else None,
    }


def few_heads(
    models: Updates,
    start_curves: pd.DataFrame,
    start_scores: list[dict[str, Any]],
    pruned_scores: list[dict[str, Any]],
    settings: Mapping[str, Any],
) -> pd.DataFrame:
    """Return scores of models with few heads, fine-tuned with gates and trained from scratch.

    They are the gates runs on all attention types, the gates runs that have a twin from scratch,
    and the twins. Starts come first, with the training `none`. Source: Voita et al., table 2.
    """
    scratch, random = models["how"] == "scratch", models["start"] == RANDOM_WEIGHTS
    gates = pd.MultiIndex.from_frame(models[["pair", "gates_run", "seed"]])
    chosen = models["how"].isin(["gates", "scratch"])
    chosen &= (models["scope"] == "all") | gates.isin(gates[scratch])
    training = np.select([scratch, random], ["scratch", "gates from random weights"], "trained")
    before = models["updates_before"].mask(scratch, 0)
    models = models.assign(training=training, updates_before=before)[chosen]
    grid, starts = settings["model"].grid, with_all_heads(models)
    full = {kind: sum(grid.counts[kind]) for kind in KINDS} | {"heads_left": grid.size}
    starts = starts.join(start_curves.groupby(RUN)["step"].max().rename("updates"), on=RUN)
    starts = starts.assign(start=starts["run"], training="none", updates_before=0, **full)
    scores = main_scores([*start_scores, *pruned_scores])[[*_TEST, "score", "signature"]]
    table = pd.concat([starts, models]).merge(scores, on=RUN)
    return with_paper(table.assign(heads=_heads(table)), _printed())


def _heads(table: pd.DataFrame) -> pd.Series:
    """Return the mean heads left of a model over seeds by attention type, such as 12/21/25."""
    models = grouped(table, ["pair", "start", "scope", "lambda"])
    texts = {}
    for number, (_, rows) in enumerate(models):
        kept = rows[rows["training"] != "scratch"]
        texts[number] = "/".join(mean_count(kept[kind]) for kind in KINDS)
    return models.ngroup().map(texts)


def _printed() -> pd.DataFrame:
    table = voita.table2().rename(columns={"value": "score"})
    heads = table["heads"].str.split("/", expand=True).astype(int).set_axis(KINDS, axis=1)
    return table.join(heads).assign(heads_left=heads.sum(axis=1), signature=voita.METRIC)


def comparison(compared: Contests, differences: Tested, untuned: Untuned) -> pd.DataFrame:
    """Return every way to choose heads beside gates, one model on one test set a row.

    `delta`: score − the score of `against`. `control_delta`: score − the score of the control.
    """
    table = compared.merge(differences, "left", [*_TEST, "against"])
    table["control_delta"] = table["score"] - table["control_score"]
    table = pd.concat([table, untuned[untuned["lambda"] > 0]])
    return table.sort_values("comparison", key=lambda names: names.map(_PARTS.get), kind="stable")


_PARTS = {"tuned": 0, "untuned": 1, "start": 2}
