"""Decisions on what encoder heads of a trained model do: relevance, confidence, functions."""

from collections.abc import Sequence
from math import isnan, sqrt

import numpy as np
import pandas as pd

from headcount.findings.claims.estimates import Estimate, with_error
from headcount.findings.claims.evidence import MODEL, Evidence
from headcount.findings.claims.verdicts import (
    NOT_APPLICABLE,
    Decision,
    by_model,
    judge,
    undecided,
)
from headcount.findings.significance import ALPHA, holm, mcnemar, shuffled_p, wilson
from headcount.findings.voita_roles.labels import arrow, label_classes

_SHUFFLES = 9999
_COLUMNS = ["layer", "head", "function", "relevance", "relevance_low"]
_COLUMNS += ["relevance_high", "confidence", "rare_two_rarest", "rare_two_rarest_chance"]
_COLUMNS += ["survival"]


def heads_of_baseline(evidence: Evidence) -> pd.DataFrame:
    """Every encoder head of the baseline; relevance by size, function empty text where none.

    The ratio rule gives relevance a sign: bounds of a size begin at 0 where the interval has both.
    """
    rows = evidence.baseline("tables/voita_roles.csv", _COLUMNS)
    rows["function"] = [_function(cell) for cell in rows["function"]]
    numbers = _COLUMNS[3:]
    rows[numbers] = rows[numbers].astype(float)
    ends = rows[["relevance_low", "relevance_high"]]
    sizes, both = ends.abs(), (ends["relevance_low"] < 0) & (ends["relevance_high"] > 0)
    rows["relevance_low"] = sizes.min(axis=1).mask(both, 0.0)
    rows["relevance_high"] = sizes.max(axis=1)
    rows["relevance"] = rows["relevance"].abs()
    return rows


def _function(cell: str | float) -> str:
    """The labels of a head; where no head has a relation, its position was read as a number."""
    if isinstance(cell, str):
        return cell
    return "" if isnan(cell) else f"{cell:+.0f}"


def positional_heads(evidence: Evidence, share: float, none: float) -> Decision:
    """Whether some head points at -1, and some at +1, in at least this share of cases.

    By the lower ends of intervals, which count sentences, not tokens, and so are wide: tokens of a
    sentence hang together. Value: the largest share at -1 or +1, whichever is smaller. Fails if no
    head's interval reaches `none` at either.
    """
    sizes = evidence.facts("heads/roles.json", "sentences")
    columns = ["kind", "layer", "head", "offset", "hits", "trials"]
    rows = evidence.baseline("heads/positions.csv", columns)
    near = rows[(rows["kind"] == "enc_self") & rows["offset"].isin([-1, 1])]

    def decide(model: pd.DataFrame) -> Decision:
        size = sizes[tuple(model[MODEL].iloc[0])]
        shares = model["hits"] / model["trials"]
        ends = [wilson(share * size, size) for share in shares]
        table = model.assign(value=shares, low=[e[0] for e in ends], high=[e[1] for e in ends])
        best = [
            table[table["offset"] == offset].nlargest(1, "value").iloc[0]
            for offset in (-1, 1)
            if (table["offset"] == offset).any()
        ]
        worse = min(best, key=lambda row: row["value"])
        holds = len(best) == 2 and all(row["low"] >= share for row in best)
        reason = ", ".join(f"{row['value']:.2f} at {row['offset']:+d}" for row in best)
        reason += f", {size} sentences"
        numbers = worse[["value", "low", "high"]]
        return judge(holds, bool((table["high"] < none).all()), reason, numbers)

    return by_model(near, MODEL, decide)


def _positional(model: pd.DataFrame) -> pd.Series:
    return model["function"].map(lambda found: "positional" in label_classes(found))


def positional_heads_sure(evidence: Evidence, confidence: float, margin: float) -> Decision:
    """Whether all positional heads have a confidence above this. Value: the smallest.

    It fails, and holds, by `margin` at least: confidence has no interval in the files.
    """

    def decide(model: pd.DataFrame) -> Decision:
        found = model.loc[_positional(model), "confidence"]
        if found.empty:
            return Decision(NOT_APPLICABLE, "no positional head", seeds=1)
        least = float(found.min())
        reason = f"{len(found)} positional heads"
        holds, fails = least >= confidence + margin, least <= confidence - margin
        return judge(holds, fails, reason, (least,))

    return by_model(heads_of_baseline(evidence), MODEL, decide)


def positional_heads_lead(evidence: Evidence) -> Decision:
    """Whether positional heads stand higher in relevance and confidence than others.

    Than others of their layers. Value: how much higher their mean rank is, from 0 to 1, in the
    measure in which they stand lower; p by shuffling labels within layers. Fails if they stand
    lower in either, after Bonferroni's correction for two.
    """

    def decide(model: pd.DataFrame) -> Decision:
        marked = _positional(model)
        if not marked.any():
            return Decision(NOT_APPLICABLE, "no positional head", seeds=1)
        within = model.groupby("layer")["relevance"].rank(pct=True)
        found = [label_effect(marked, ranks, model["layer"])
                 for ranks in (within, model["confidence"].rank(pct=True))]  # fmt: skip
        reason = f"{marked.sum()} positional heads; relevance {found[0][0]:+.2f}, "
        reason += f"confidence {found[1][0]:+.2f}"
        holds = all(effect > 0 and chance < ALPHA for effect, chance in found)
        against = [each for each in found if each[0] < 0 and len(found) * each[1] < ALPHA]
        value, p = min(against or found)
        p = p if against else max(chance for _, chance in found)
        numbers, tests = (value, np.nan, np.nan, p), len(found) if against else 1
        return judge(holds, bool(against), reason, numbers, tests=tests)

    return by_model(heads_of_baseline(evidence), MODEL, decide)


def label_effect(marked: pd.Series, values: pd.Series, layers: pd.Series) -> tuple[float, float]:
    """Mean value of marked heads minus that of the others, less their layers' means; its p.

    P is two-sided, by shuffling marks within layers. NaN, and 1, if all heads or none are marked.
    """
    marks = marked.to_numpy(dtype=bool)
    if marks.all() or not marks.any():
        return np.nan, 1.0
    numbers = (values - values.groupby(layers).transform("mean")).to_numpy(dtype=float)
    effect = numbers[marks].mean() - numbers[~marks].mean()
    p = shuffled_p(marks.astype(float), numbers, layers.to_numpy(), _SHUFFLES)
    return float(effect), p


def syntactic_heads(evidence: Evidence, relations: Sequence[str], margin: float) -> Decision:
    """Whether some head beats the positional baseline by `margin`, for each relation both ways.

    Of a head chosen on half of the trials and judged on the others, and with p below α for the
    best head, corrected for the choice of the head and by Holm for relations and directions.
    Value: the smallest such margin. Fails if no head reaches it anywhere, even on its own trials.
    """
    columns = ["treebank", "relation", "direction", "held_out", "baseline"]
    rows = evidence.baseline("tables/voita_table1.csv", [*columns, "margin", "p"])

    def decide(model: pd.DataFrame) -> Decision:
        model = model.assign(p_holm=holm(model["p"].to_numpy(dtype=float)))
        chosen = model[model["relation"].isin(relations)]
        if len(chosen) < 2 * len(relations):
            return undecided("a relation has no trials", 1)
        gains = (chosen["held_out"] - chosen["baseline"]).astype(float)
        reached = (gains >= margin) & (chosen["p_holm"] < ALPHA)
        none = bool((chosen["margin"].astype(float) < margin).all())
        reason = f"{reached.sum()} of {len(chosen)} relations and directions"
        p = chosen["p_holm"].max() if reached.all() else np.nan
        return judge(bool(reached.all()), none, reason, (gains.min(), np.nan, np.nan, p))

    return by_model(rows, [*MODEL, "treebank"], decide)


def several_heads_per_relation(evidence: Evidence, margin: float) -> Decision:
    """Whether at least two heads exceed the positional baseline by `margin` for some relation.

    Each with p (McNemar) times `tests`, the number of heads, relations and directions, below α.
    Value: the margin of a relation's second best head, the largest; p if it holds. Fails if the
    interval of every second head ends below `margin`. Not applicable without any head that exceeds
    it.
    """
    columns = ["treebank", "relation", "direction", "hits", "trials"]
    rows = evidence.baseline("heads/syntax.csv", [*columns, "head_only", "baseline_only"])

    def decide(model: pd.DataFrame) -> Decision:
        first, second = {}, {}
        for names, heads in model.groupby(columns[1:3], sort=False):
            best = heads.nlargest(2, "hits")[["head_only", "baseline_only", "trials"]]
            first[names], second[names] = (
                _margin(*counts) for counts in best.itertuples(index=False)
            )
        level = ALPHA / len(model)
        if not any(each.value >= margin and each.p < level for each in first.values()):
            return Decision(NOT_APPLICABLE, "no syntactic head", seeds=1)
        where = max(second, key=lambda names: second[names].value)
        most, fails = second[where], all(each.high < margin for each in second.values())
        holds = most.value >= margin and most.p < level
        found = most[: 4 if not fails else 3]
        return judge(holds, fails, arrow(*where), found, tests=len(model))

    return by_model(rows, [*MODEL, "treebank"], decide)


def _margin(head_only: int, baseline_only: int, trials: int) -> Estimate:
    """Share of trials that a head gets right minus the baseline's; p by McNemar."""
    value = (head_only - baseline_only) / trials
    error = sqrt(((head_only + baseline_only) / trials - value**2) / trials)
    return with_error(value, error)._replace(p=mcnemar(head_only, baseline_only))


def rare_word_head(evidence: Evidence, share: float, near: float) -> Decision:
    """Whether a first-layer head points at one of the two rarest tokens in most cases.

    Value: the best head's share; its interval counts sentences, not tokens, and so is wide. Fails
    if it ends within `near` of what shuffled frequencies give.
    """
    sizes = evidence.facts("heads/roles.json", "rare_sentences")
    rows = heads_of_baseline(evidence)
    first = rows[rows["layer"] == 0].dropna(subset="rare_two_rarest")

    def decide(model: pd.DataFrame) -> Decision:
        best = model.loc[model["rare_two_rarest"].idxmax()]
        size = sizes[tuple(best[MODEL])]
        found, chance = best["rare_two_rarest"], best["rare_two_rarest_chance"]
        low, high = wilson(found * size, size)
        reason = f"{size} sentences; by chance {chance:.2f}"
        return judge(low > share, high < chance + near, reason, (found, low, high))

    return by_model(first, MODEL, decide)
