"""Decisions that compare measures of heads, corpora, or whole models."""

from dataclasses import replace
from itertools import combinations
from math import comb, isnan, nan

import numpy as np
import pandas as pd

from headcount.findings.claims.estimates import over_trainings
from headcount.findings.claims.evidence import MODEL, Evidence
from headcount.findings.claims.roles import heads_of_baseline
from headcount.findings.claims.verdicts import (
    MIN_SEEDS,
    NO_RUN,
    NOT_APPLICABLE,
    TRAINING,
    TRIAL,
    UNIT,
    Decision,
    agree,
    between_corpora,
    by_model,
    judge,
    too_few,
    undecided,
)
from headcount.findings.significance import ALPHA, holm, wilson

_COLUMNS = ["kind", "scope", "first", "second", "spearman", "low", "high", "p"]

_WORDS = {"bleu_lost": "BLEU lost without the head", "survival": "survival under gates"}
_WORDS |= {"loss_change": "loss change without the head"}


def _correlations(evidence: Evidence, kind: str, scope: str) -> pd.DataFrame:
    """Rank correlations between measures of the baseline's heads, where they have a value.

    P is by shuffling heads, within layers where the scope is.
    """
    rows = evidence.baseline("tables/voita_agreement.csv", _COLUMNS)
    chosen = rows[(rows["kind"] == kind) & (rows["scope"] == scope)].dropna(subset=_COLUMNS[4:])
    return chosen.astype(dict.fromkeys(_COLUMNS[4:], float))


def measures_agree(
    evidence: Evidence, measures: list[str], kind: str, scope: str, least: float, fail: float
) -> Decision:
    """Whether two measures of heads correlate by at least `least` (Spearman), and not by chance.

    Fails if the correlation is at most `fail` with an interval that ends below `least`.
    """
    rows = _correlations(evidence, kind, scope)
    both = rows["first"].isin(measures) & rows["second"].isin(measures)

    def decide(model: pd.DataFrame) -> Decision:
        rho, low, high, p = model[_COLUMNS[4:]].iloc[0]
        holds = rho >= least and low > 0 and p < ALPHA
        fails = rho <= fail and high < least
        told = f"{' and '.join(_WORDS.get(name, name) for name in measures)}, {scope}"
        # That it is weak is shown by the interval: p is of no correlation at all.
        return judge(holds, fails, told, (rho, low, high, nan if fails else p))

    return by_model(rows[both], MODEL, decide)


def all_measures_agree(evidence: Evidence, measures: list[str], kind: str, scope: str) -> Decision:
    """Whether every two of the measures correlate above 0, p corrected by Holm.

    Value: the smallest correlation of all models. Fails if one is significantly below 0.
    """
    rows = _correlations(evidence, kind, scope)
    inside = rows["first"].isin(measures) & rows["second"].isin(measures)
    count = len(list(combinations(measures, 2)))

    def decide(model: pd.DataFrame) -> Decision:
        tested = model.assign(p=holm(model["p"].to_numpy()))
        good = (tested["spearman"] > 0) & (tested["p"] < ALPHA)
        bad = (tested["spearman"] < 0) & (tested["p"] < ALPHA)
        worst = tested.loc[(tested[bad] if bad.any() else tested)["spearman"].idxmin()]
        reason = f"{good.sum()} of {count} pairs of measures above 0, {bad.sum()} below"
        reason += f", {count - len(tested)} not measured" * (len(tested) < count) + "; least: "
        reason += " and ".join(_WORDS.get(worst[name], worst[name]) for name in ("first", "second"))
        p = worst["p"] if bad.any() else tested["p"].max()
        holds = good.sum() == count
        found = (*worst[_COLUMNS[4:7]], p)
        return judge(bool(holds), bool(bad.any()), reason, found)

    return by_model(rows[inside], MODEL, decide, np.nanmin)


def relevant_are_known(evidence: Evidence, overlap: float) -> Decision:
    """Whether the most relevant encoder heads are those with a function, and the most confident.

    As many heads as have a function, over all layers. Value: the smaller of the two shared parts.
    Fails if neither is above chance (hypergeometric) and the interval ends below `overlap`.
    """

    def decide(model: pd.DataFrame) -> Decision:
        known = set(model.index[model["function"] != ""])
        if not known:
            return Decision(NOT_APPLICABLE, "no head has a function", seeds=1)
        relevant, sure = (
            set(model[name].nlargest(len(known)).index) for name in ("relevance", "confidence")
        )
        shared = [len(relevant & other) for other in (known, sure)]
        chances = [at_least(each, len(model), len(known)) for each in shared]
        reason = f"{shared[0]} of {len(known)} have a function, {shared[1]} are most confident"
        value, p = min(shared) / len(known), max(chances)
        bounds = wilson(min(shared), len(known))
        fails = min(chances) >= ALPHA and bounds[1] < overlap
        holds = value >= overlap and p < ALPHA
        return judge(holds, fails, reason, (value, *bounds, p))

    return by_model(heads_of_baseline(evidence), MODEL, decide)


def at_least(shared: int, heads: int, chosen: int) -> float:
    """Probability that two sets of `chosen` of so many heads share at least so many by chance."""
    ways = (
        comb(chosen, each) * comb(heads - chosen, chosen - each)
        for each in range(shared, chosen + 1)
    )
    return sum(ways) / comb(heads, chosen)


def subjects_by_domain(evidence: Evidence, rich: str, poor: str) -> Decision:
    """Whether heads find subjects by a larger margin where persons vary more.

    Of trainings on corpora whose pairs' names begin with `rich` and `poor`, on the same trees, both
    directions. Value: difference of margins over the positional baseline, mean of the directions.
    """
    columns = ["treebank", "relation", "direction", "margin"]
    rows = evidence.baseline("tables/voita_table1.csv", columns)
    rows = rows[rows["relation"] == "nsubj"].astype({"margin": float})
    alike = [each for _, each in rows.groupby(["treebank", "direction"], sort=False)] or [rows]
    parts = [between_corpora(each, "margin", rich, poor) for each in alike]
    # Trees in one corpus' language alone have no difference.
    shared = [part for part in parts if not isnan(part.value)] or parts[:1]
    return replace(agree(shared), seeds=max(part.seeds for part in shared))


def more_heads_better(evidence: Evidence, few: int, many: int, least: float) -> Decision:
    """Whether models with `many` heads a layer have at least `least` BLEU more than with `few`.

    Of models that are alike in all else, on each test set of each pair. Value: the difference of
    the two of a seed, with a t interval over seeds.
    """
    rows = evidence.rows("tables/heads_per_layer.csv", ["test_set", "heads_per_layer", "bleu"])
    # Means over seeds have none.
    models = rows.dropna(subset="seed").assign(
        alike=lambda found: found["run"].str.replace(r"-h\d+(?=-|$)", "", regex=True)
    )
    models = models.set_index([*UNIT, "test_set", "alike"])
    with_many, with_few = (
        models[models["heads_per_layer"] == heads]["bleu"].astype(float) for heads in (many, few)
    )
    parts = []
    gained = (with_many - with_few).dropna()
    trials = gained.groupby(["pair", "test_set", *TRIAL], sort=False)
    for _, gains in trials.mean().groupby(["pair", "test_set"], sort=False):
        if len(gains) < MIN_SEEDS:
            parts.append(too_few(gains))
            continue
        gain = over_trainings(gains)
        holds = gain.value >= least and gain.low > 0
        parts.append(judge(holds, gain.high <= 0, f"{many} heads to {few}", gain, len(gains)))
    if not parts:
        return undecided(f"{NO_RUN} with {few} and {many} heads a layer")
    return replace(agree(parts), seeds=gained.groupby(TRAINING).ngroups)
