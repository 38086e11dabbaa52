"""Whether heads that are important early in training are those that are so in the end."""

from itertools import combinations

import numpy as np

from headcount.findings.claims.estimates import over_trainings
from headcount.findings.claims.evidence import MODEL, Evidence
from headcount.findings.claims.headmask import TOP
from headcount.findings.claims.verdicts import (
    MIN_SEEDS,
    TRAINING,
    Decision,
    by_seed,
    judge,
    too_few,
)
from headcount.findings.results import HEAD

_AGREEMENT = "spearman_raw_with_last"


def early_heads_stay(
    evidence: Evidence, early: float, none: float, bound: float, shared: float
) -> Decision:
    """Whether importance early in training predicts the final one, while seeds differ in heads.

    Rank correlation of the first checkpoint, within the share `early` of training, with the last,
    of all heads by importance as HeadMask ranks them: not divided by that of their layer.
    Fails if it is below `none` in size with an interval around 0 that ends below `bound`: a wide
    one excludes nothing. Seeds differ if they share less than `shared` of their top heads.
    """
    columns = ["update", _AGREEMENT]
    rows = evidence.baseline("tables/michel_training.csv", columns)
    last = rows.groupby(MODEL)["update"].transform("max")
    rows = rows[rows["update"] <= early * last]
    first = rows.loc[rows.groupby(MODEL)["update"].idxmin()] if len(rows) else rows
    known = first.dropna(subset=_AGREEMENT).astype({_AGREEMENT: float})
    trainings = by_seed(known.groupby(TRAINING)[_AGREEMENT].mean())
    rho = trainings.mean(axis=1)
    if len(rho) < MIN_SEEDS:
        return too_few(rho)
    whole, alike = over_trainings(rho), _shared_top(evidence)
    fails = whole.low <= 0 <= whole.high < bound and abs(whole.value) < none
    reason = f"seeds share {alike:.0%} of their top heads"
    count = int(trainings.count().sum())
    return judge(whole.low > 0 and alike < shared, fails, reason, whole, count)


def _shared_top(evidence: Evidence) -> float:
    """Mean share of the most important heads that two seeds of the baseline have in common.

    Over pairs of seeds and models of one size; one seed in two experiments may be one training.
    """
    rows = evidence.baseline("figures/headmask_heads.csv", [*HEAD, "rank"])
    rows = rows.assign(heads=rows.groupby(MODEL)["rank"].transform("size"))
    shares: dict[tuple, list[float]] = {}
    for (pair, heads), alike in rows.groupby(["pair", "heads"]):
        models = alike[alike["rank"] <= max(1, round(TOP * heads))].groupby(MODEL)
        tops = [(key[-1], set(zip(*top[HEAD].T.to_numpy(), strict=True))) for key, top in models]
        for (seed, a), (other, b) in combinations(tops, 2):
            if seed != other:
                both = (pair, heads, *sorted((seed, other)))
                shares.setdefault(both, []).append(len(a & b) / len(a))
    return float(np.mean([np.mean(each) for each in shares.values()])) if shares else 1.0
