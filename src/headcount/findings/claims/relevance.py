"""Decisions on what relevance ranks first: few heads, one head, the head of rare words."""

import numpy as np
import pandas as pd

from headcount.findings.claims.evidence import MODEL, Evidence
from headcount.findings.claims.roles import heads_of_baseline
from headcount.findings.claims.verdicts import (
    MIN_SEEDS,
    NO_RUN,
    TRAINING,
    UNDECIDED,
    Decision,
    by_model,
    few_seeds,
    judge,
    undecided,
)
from headcount.findings.significance import ALPHA


def few_heads_relevant(evidence: Evidence, over: float, near: float) -> Decision:
    """Whether in most layers the top head's relevance is above `over` times a uniform share.

    And its interval above the uniform share, which is the mean of the layer's heads. Value: that
    relevance over the uniform share, in the layer that completes the majority. Fails if all heads
    are within `near` of uniform.
    """

    def decide(model: pd.DataFrame) -> Decision:
        uniform = model.groupby("layer")["relevance"].transform("mean")
        times = model[["relevance", "relevance_low", "relevance_high"]].div(uniform, axis=0)
        leads = times.loc[times["relevance"].groupby(model["layer"]).idxmax()]
        standing = (leads["relevance"] > over) & (leads["relevance_low"] > 1)
        reason = f"{standing.sum()} of {len(leads)} layers; largest "
        reason += f"{leads['relevance'].max():.2f} times uniform"
        deciding = leads.nlargest(len(leads) // 2 + 1, "relevance").iloc[-1]
        flat = bool(((times["relevance"] - 1).abs() <= near).all())
        return judge(standing.mean() > 0.5, flat, reason, deciding)

    return by_model(heads_of_baseline(evidence), MODEL, decide)


def rare_head_leads(evidence: Evidence, quantile: float) -> Decision:
    """Whether layer 1's most relevant head points most at rare words, and is not confident.

    Confident: above this quantile of the encoder. Value: models in which it does. By chance it
    would in one of as many as there are heads, to the power of models: p, of a verdict that it
    holds. Fails if it is another head in every model. Fewer models than `MIN_SEEDS` decide nothing;
    those of one pair and seed count once, by their mean.
    """
    rows = heads_of_baseline(evidence)
    first = rows[rows["layer"] == 0].dropna(subset="rare_two_rarest")
    bars = rows.groupby(MODEL)["confidence"].quantile(quantile)
    leads = []
    for key, model in first.groupby(MODEL, sort=False):
        lead = model.loc[model["relevance"].idxmax()]
        same = lead.name == model["rare_two_rarest"].idxmax()
        leads.append((*key, same and lead["confidence"] < bars[key], same, len(model)))
    table = pd.DataFrame(leads, columns=[*MODEL, "hit", "same", "heads"]).astype({"hit": float})
    trainings = table.groupby(TRAINING).agg({"hit": "mean", "same": "any", "heads": "min"})
    hits, models = float(trainings["hit"].sum()), len(trainings)
    if not models:
        return undecided(NO_RUN)
    p = float(np.prod(1 / trainings["heads"]))
    holds = hits == models and p < ALPHA
    reason = f"in {hits:g} of {models} models; in all by chance with p = {p:.2g}"
    found = (hits / models, np.nan, np.nan, p if holds else np.nan)
    if models < MIN_SEEDS:
        return Decision(UNDECIDED, f"{reason}; {few_seeds(models)}", found[0], seeds=models)
    return judge(holds, not trainings["same"].any(), reason, found, models)


def one_head_dominates(evidence: Evidence, ratio: float, equal: float) -> Decision:
    """Whether layer 1's most relevant head has `ratio` times the relevance of the next, always.

    Value: the mean over models, at least `MIN_SEEDS`; the interval covers all of theirs. Fails if
    most have a ratio below `equal`. Models of one pair and seed count once: in the value by their
    mean, in the verdict by the one that is most against it.
    """
    rows = heads_of_baseline(evidence).query("layer == 0")
    ratios = []
    for key, model in rows[rows.duplicated(MODEL, keep=False)].groupby(MODEL):  # of two heads
        first, second = (row for _, row in model.nlargest(2, "relevance").iterrows())
        low = first["relevance_low"] / second["relevance_high"]
        bound = second["relevance_low"]  # of the ratio rule it may be 0, so that nothing bounds
        high = first["relevance_high"] / bound if bound > 0 else np.nan
        ratios.append((*key, first["relevance"] / second["relevance"], low, high))
    if not ratios:
        return undecided(NO_RUN)
    table = pd.DataFrame(ratios, columns=[*MODEL, "value", "low", "high"])
    of_each = table.groupby(TRAINING)["value"]
    values, least = of_each.mean(), of_each.min()
    found = (values.mean(), table["low"].min(), table["high"].max(skipna=False))
    holds = bool((least > ratio).all() and found[1] > 1)
    fails = bool((of_each.max() < equal).mean() > 0.5)
    reason = f"{(least > ratio).sum()} of {len(values)} models"
    if len(values) < MIN_SEEDS:
        return Decision(UNDECIDED, f"{reason}: a claim about all models needs {MIN_SEEDS}",
                        *found, seeds=len(values))  # fmt: skip
    return judge(holds, fails, reason, found, len(values))
