"""Decisions on groups of heads that are masked in one trained model, the baseline."""

from math import ceil, nan

import numpy as np
import pandas as pd

from headcount.findings.claims.curves import MASKED, by_own_ranking, groups_masked, weights
from headcount.findings.claims.estimates import EFFECT, combined, small_loss
from headcount.findings.claims.evidence import TEST, Evidence
from headcount.findings.claims.verdicts import Decision, by_model, judge, undecided
from headcount.findings.significance import ALPHA, holm, spearman

_BOUNDS = EFFECT[:3]


def _groups(evidence: Evidence) -> pd.DataFrame:
    """Rows of the baseline with one group of heads masked, the most important group first."""
    rows = groups_masked(evidence.baseline("masking/headmask.csv", MASKED))
    return rows.sort_values([*TEST, "index"], kind="stable")


def top_group_hurts_most(
    evidence: Evidence,
    groups: int,
    rank_correlation: float,
    equal: float,
    limit: float,
    bound: float,
) -> Decision:
    """Whether the top group costs more BLEU than the bottom group, which costs little.

    And ranks of groups, of `groups` or more, tell how much: little is a `small_loss`. Value: BLEU
    with the bottom group masked minus BLEU with the top group masked. Fails if its interval ends
    below `equal`.
    """

    def decide(model: pd.DataFrame) -> Decision:
        if len(model) < groups:
            return undecided(_coarse(model, groups), 1)
        ends = model.iloc[[-1, 0]][_BOUNDS].to_numpy(dtype=float)
        found = combined((1, -1), ends)
        rho = spearman(model["index"].to_numpy(), model["bleu"].to_numpy())
        bottom = model.iloc[-1]
        reason = f"rank correlation of group and BLEU {rho:.2f}; the bottom group changes BLEU by "
        reason += f"{bottom['delta']:+.2f}"
        apart = found.low > 0 and rho >= rank_correlation
        holds = apart and small_loss(bottom, limit, bound)
        return judge(holds, found.high <= equal, reason, found)

    return by_model(_groups(evidence), TEST, decide)


def lower_half_matters_little(
    evidence: Evidence, groups: int, limit: float, bound: float, hold: float, fail: float
) -> Decision:
    """Whether most groups of the less important half can each be masked at little cost.

    Of `groups` or more: fewer are larger parts of the heads than the claim is about.

    Value: share of them with a small loss, see `small_loss`, p by Holm over them. Holds from the
    share `hold` on; fails if at least the share `fail` clearly lose more than `bound`: their
    intervals end below it, and p is below α. P, of a verdict that it fails, is that of the last
    group that this takes.
    """

    def decide(model: pd.DataFrame) -> Decision:
        if len(model) < groups:
            return undecided(_coarse(model, groups), 1)
        lower = model.iloc[len(model) - len(model) // 2 :]
        lower = lower.assign(p=holm(lower["p"].to_numpy()))
        small = [small_loss(row, limit, bound) for row in lower.to_dict("records")]
        large = (lower["delta_high"] < -bound) & (lower["p"] < ALPHA)
        reason = f"{sum(small)} of {len(small)} groups lose little, {large.sum()} much"
        value, fails = float(np.mean(small)), large.mean() >= fail
        p = sorted(lower.loc[large, "p"])[ceil(fail * len(lower)) - 1] if fails else nan
        return judge(value >= hold, fails, reason, (value, nan, nan, p))

    return by_model(_groups(evidence), TEST, decide)


def _coarse(model: pd.DataFrame, groups: int) -> str:
    """Why groups do not tell, where they are fewer than the claim needs."""
    return f"{len(model)} groups of heads; the claim is about {groups}"


def unimportant_first_keeps_more(evidence: Evidence, narrow: float) -> Decision:
    """Whether the area under BLEU is larger when the unimportant heads are masked first.

    Value: difference of the areas over the share of heads, in BLEU. Fails if its interval is below
    0, or around it and no wider than the share `narrow` of the unmasked BLEU.
    """
    rows = by_own_ranking(evidence.baseline("masking/headmask.csv", MASKED))

    def decide(model: pd.DataFrame) -> Decision:
        found = combined(*_area_terms(model))
        start = model.loc[model["order"] == "ascending", "bleu"].iloc[0]
        none = found.low <= 0 <= found.high and found.high - found.low < narrow * start
        fails = found.high < 0 or none
        return judge(found.low > 0, fails, "areas of the two orders", found)

    return by_model(rows[rows["order"].isin(["ascending", "descending"])], TEST, decide)


def _area_terms(model: pd.DataFrame) -> tuple[list[float], list[list[float]]]:
    """Weights and BLEU changes whose sum is the difference of the areas.

    The ends are left out: with no head and with all heads masked, both orders are one model.
    """
    signs, terms = [], []
    for order, sign in (("ascending", 1), ("descending", -1)):
        curve = model[model["order"] == order].sort_values("heads_masked")
        signs += list(sign * weights(curve["heads_masked"])[1:-1])
        terms += curve[_BOUNDS].iloc[1:-1].to_numpy(dtype=float).tolist()
    return signs, terms
