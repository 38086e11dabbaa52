"""Pruned runs: their scores, where BLEU falls, and other ways to choose heads (Voita et al.)."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headcount.analysis.frames import BASE, RUN, FrameOf, Settings, grouped, refuse, with_paper
from headcount.analysis.published import voita
from headcount.analysis.scores import DIFFERENCE, compare
from headcount.analysis.tables.voita import pruned
from headcount.analysis.tables.voita.pruned import with_all_heads
from headcount.base.addresses import KINDS
from headcount.base.settings.runs import RANDOM_WEIGHTS

_LIMITS = (0.25, 1.0)  # losses of BLEU, in points
_ORDER = {"gates": 0, "ranked": 1, "drawn": 2, "scratch": 3, "subset": 4}
_SWEEP = ["pair", "scope", "start", "seed"]


def records(
    models: FrameOf[pruned.models],
    scores: FrameOf[pruned.scores],
    pruned_translations: list[Path],
    references: list[Path],
) -> pd.DataFrame:
    """Return one pruned run on one test set a row, with its difference to the control."""
    scores = scores.drop(columns="signature")
    table = models.merge(scores, "left", on=RUN)
    for name in ("start", "control"):
        other = scores.rename(columns={"run": name, "score": f"{name}_score"})
        table = table.merge(other, "left", ["pair", name, "seed", "test_set"])
    refuse(
        table[table["control_score"].isna()],
        "expected bleu.json of {run} and of {control} ({pair}, seed {seed}); score them again",
    )
    return compare(table.assign(against=table["control"]), pruned_translations, references)


def untuned_models(
    models: FrameOf[pruned.models], untuned: pd.DataFrame, settings: Settings
) -> pd.DataFrame:
    """Return starts without fine-tuning, with as many heads left as a gates run, else UserError."""
    gates = models[[*RUN, "scope", "lambda", "scope_heads", "scope_left", "heads_left"]]
    gates = gates.set_axis(["pair", "gates_run", *gates.columns[2:-1], "expected"], axis=1)
    rows = untuned.rename(columns={"as_run": "gates_run", "order": "contender"})
    rows = rows.merge(gates, on=["pair", "gates_run", "seed"])
    rows["heads_left"] = settings["model"].grid.size - rows["heads_masked"]
    refuse(
        rows[rows["heads_left"] != rows["expected"]],
        "untuned_masking.csv of {pair}, {run}, seed {seed}: as {gates_run} expected {expected} "
        "heads left, found {heads_left}; run untuned_masking again",
    )
    return rows.assign(against=rows["run"], comparison="untuned")


def falls(runs: FrameOf[records]) -> pd.DataFrame:
    """Return at how many heads a sweep over λ first falls more than a limit below its control."""
    rows = []
    for key, sweep in grouped(runs[runs["how"] == "gates"], _SWEEP):
        # The control stands first even where another run has as many heads, or more.
        sweep = sweep.assign(penalised=sweep["lambda"] > 0).sort_values(
            ["penalised", "scope_left", "lambda"], ascending=[True, False, True], kind="stable"
        )
        facts = dict(zip(_SWEEP, key, strict=True)) | _shares(sweep.drop_duplicates("run"))
        for test, of_test in sweep.groupby("test_set", sort=False):
            rows += [facts | {"test_set": test} | _fall(of_test, limit) for limit in _LIMITS]
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


def _shares(models: pd.DataFrame) -> dict[str, Any]:
    """Return mean shares of heads left by attention type. The first model is the control."""
    shorn = models.iloc[1:].query("scope_left < scope_heads")
    shares = shorn.loc[shorn["scope"] == "all", [f"{kind}_share" for kind in KINDS]]
    mean, encoder = shares.mean(), shares.iloc[:, 0] < shares.iloc[:, 1:].min(axis=1)
    first = mean.index[mean == mean.min()].str.removesuffix("_share")
    return mean.to_dict() | {
        "runs": len(models) - 1,
        "scope_heads": models["scope_heads"].iloc[0],
        "runs_shorn": len(shorn),
        "first_kind": " and ".join(first) or None,
        "enc_self_lowest": encoder.sum() if len(shares) else None,
    }


def few_heads(
    models: FrameOf[pruned.updates],
    scores: FrameOf[pruned.scores],
    start_curves: pd.DataFrame,
    settings: Settings,
) -> pd.DataFrame:
    """Return scores of models with few heads, fine-tuned with gates and trained from scratch.

    Starts come first, with the training `none`. Source: Voita et al., table 2.
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
    printed = voita.table("table2", "score").rename(columns={"heads": "printed"})
    printed = printed.fillna({"training": "none"})
    heads = printed["printed"].str.split("/", expand=True).astype(int).set_axis(KINDS, axis=1)
    printed = printed.join(heads).assign(heads_left=heads.sum(axis=1), signature=voita.PAPER.metric)
    table = pd.concat([starts, models]).merge(scores, on=RUN)
    return with_paper(table.assign(printed=None), printed)


def comparison(
    runs: FrameOf[records],
    untuned: FrameOf[untuned_models],
    pruned_translations: list[Path],
    references: list[Path],
) -> pd.DataFrame:
    """Return models that are compared with a gates run of λ > 0, one on one test set a row.

    Comparison `tuned`: ways to choose as many heads. `untuned`: the same without fine-tuning.
    `start`: gates runs of one λ from different starts, of which one is the baseline. `against`:
    the run whose score is subtracted. Without any comparison, all models are there.
    """
    runs = runs.assign(control_delta=runs["delta"], place=runs["how"].map(_ORDER))
    penalised, untuned = runs[runs["lambda"] > 0], untuned[untuned["lambda"] > 0]
    gates = penalised[penalised["how"] == "gates"]
    alike = [gates[name] for name in ("pair", "scope", "lambda", "seed")]
    bases = gates["run"].where(gates["start"] == BASE).groupby(alike).transform("first")
    tuned = _contest(penalised, "tuned", "how", penalised["gates_run"])
    start = _contest(gates, "start", "start", bases)
    if tuned.empty and start.empty and untuned.empty:
        tuned = _contest(runs, "tuned", "how", runs["gates_run"], least=1)
    table = pd.concat([tuned, untuned, start], ignore_index=True)
    wanted = table.dropna(subset="against").query("comparison != 'untuned'")
    compared = compare(wanted, pruned_translations, references).set_axis(wanted.index)
    table.loc[wanted.index, DIFFERENCE] = compared[DIFFERENCE]
    return table


def _contest(
    rows: pd.DataFrame, comparison: str, contender: str, bases: pd.Series, least: int = 2
) -> pd.DataFrame:
    """Return the models that are compared with a run of `bases`, if they are `least` or more."""
    group = ["pair", "gates_run", "lambda", "seed"]
    rows = rows.assign(comparison=comparison, contender=rows[contender], gates_run=bases)
    rows = rows[rows.groupby(group)["run"].transform("nunique") >= least]
    first = [rows.groupby(group, sort=False).ngroup(), pd.factorize(rows["test_set"])[0]]
    rows = rows.iloc[np.lexsort([rows["place"], *reversed(first)])]
    against = rows["gates_run"].where(rows["run"] != rows["gates_run"])
    return rows.drop(columns=DIFFERENCE).assign(against=against)
