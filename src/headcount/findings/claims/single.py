"""Decisions on single heads and layers of one trained model, nothing retrained."""

from math import nan

import pandas as pd

from headcount.findings.claims.estimates import EFFECT, change_of
from headcount.findings.claims.evidence import MODEL, TEST, Evidence
from headcount.findings.claims.verdicts import NOT_APPLICABLE, Decision, by_model, judge
from headcount.findings.results import HEAD
from headcount.findings.significance import ALPHA, holm

LEVEL = 0.01  # the paper's, of a single p


def _single_heads(evidence: Evidence) -> pd.DataFrame:
    """Every head masked alone, on every test set and dev."""
    columns = ["test_set", *HEAD, *EFFECT]
    return evidence.baseline("tables/michel_ablation.csv", columns)


def _with_sentences(evidence: Evidence, rows: pd.DataFrame, least: int) -> pd.DataFrame:
    """The rows of test sets other than dev, with the number of sentences that were scored.

    `spare`: whether these are fewer than `least`, and the model has a test set with as many.
    """
    sizes = evidence.facts("masking/ablation.json", "sentences")
    tested = rows[rows["test_set"] != "dev"]
    keys = tested[TEST].itertuples(index=False, name=None)
    tested = tested.assign(sentences=[sizes[key[:4]][key[4]] for key in keys])
    most = tested.groupby(MODEL)["sentences"].transform("max")
    return tested.assign(spare=(tested["sentences"] < least) & (most >= least))


def _judged(
    model: pd.DataFrame, least: int, reason: str, holds: bool, fails: bool, share: float
) -> Decision:
    """A verdict that holds on `least` sentences only; a test set with fewer fails or is spare."""
    size = model["sentences"].iloc[0]
    told = f"{reason}; {size} sentences" + (f" of at least {least}" if size < least else "")
    if model["spare"].iloc[0] and not fails:
        return Decision(NOT_APPLICABLE, told, seeds=1)
    return judge(holds and size >= least, fails, told, (share,))


def few_heads_matter(evidence: Evidence, most: float, fail: float, sentences: int) -> Decision:
    """Whether few heads change BLEU significantly (p < 0.01) when masked alone.

    Value: their share, of all heads of the model, so that it has no interval over heads. Holds up
    to `most` on at least as many sentences, since fewer show fewer; fails above `fail`. A test set
    with fewer that does not fail says nothing beside one with as many.
    """

    def decide(model: pd.DataFrame) -> Decision:
        hits, still = int((model["p"] < LEVEL).sum()), (holm(model["p"].to_numpy()) < LEVEL).sum()
        share, reason = hits / len(model), f"{hits} of {len(model)} heads, {still} by Holm"
        return _judged(model, sentences, reason, share <= most, share > fail, share)

    return by_model(_with_sentences(evidence, _single_heads(evidence), sentences), TEST, decide)


def single_heads_break(evidence: Evidence, large: float, small: float, few: float) -> Decision:
    """Whether most heads cost more than `large` BLEU when masked alone.

    Value: share of heads that cost more than `small`, from the share of those that do by their
    whole interval to the share of those that may. Holds by whole intervals; fails if fewer than
    `few` may.
    """
    rows = _single_heads(evidence)

    def decide(model: pd.DataFrame) -> Decision:
        share, sure, perhaps = (
            float((model[name] < -small).mean()) for name in ("delta", "delta_high", "delta_low")
        )
        broken = (model["delta_high"] < -large).mean()
        reason = f"of {len(model)} heads {broken:.0%} surely cost over {large:g} BLEU, "
        reason += f"{perhaps:.0%} may cost over {small:g}"
        return judge(broken > 0.5, perhaps < few, reason, (share, sure, perhaps))

    return by_model(rows[rows["test_set"] != "dev"], TEST, decide)


def some_heads_harm(evidence: Evidence, least: float) -> Decision:
    """Whether some head's removal raises BLEU significantly on each of two test sets.

    Value: how many. Fails if no head gains more than `least` on any set.
    """

    def decide(model: pd.DataFrame) -> Decision:
        gains = model[(model["delta"] > 0) & (model["p"] < LEVEL)]
        sets = gains.groupby(HEAD).size()
        both = int((sets > 1).sum())
        tests = model["test_set"].nunique()
        reason = f"{len(sets)} heads gain significantly on one of {tests} sets, {both} on more; "
        reason += f"the largest change is {model['delta'].max():+.2f}"
        return judge(both > 0, model["delta"].max() <= least, reason, (both,))

    return by_model(_single_heads(evidence), MODEL, decide)


def effects_transfer(evidence: Evidence, weak: float, high: float) -> Decision:
    """Whether the effects of single heads correlate (Pearson) across test sets.

    With an interval above 0 too. Fails if r is at most `weak` and its interval ends below `high`.
    """
    columns = ["test_set", "other_test_set", "kind", "pearson"]
    columns += ["pearson_low", "pearson_high", "pearson_p"]
    rows = evidence.baseline("tables/michel_transfer.csv", columns)
    rows = rows[(rows["kind"] == "all") & rows["pearson"].notna()]

    def decide(model: pd.DataFrame) -> Decision:
        r, low, top, p = map(float, model[["pearson", *columns[-3:]]].iloc[0])
        reason = " and ".join(model[["test_set", "other_test_set"]].iloc[0])
        holds, fails = low > 0 and p < ALPHA, r <= weak and top < high
        # That it is weak is shown by the interval: p is of no correlation at all.
        return judge(holds, fails, reason, (r, low, top, nan if fails else p))

    return by_model(rows, [*TEST, "other_test_set"], decide)


def _layers(evidence: Evidence) -> pd.DataFrame:
    """The best single head of every layer and kind, chosen on dev and scored elsewhere."""
    columns = ["test_set", "kind", "layer", *EFFECT]
    return evidence.baseline("tables/michel_all_but_one.csv", columns)


def one_head_suffices(evidence: Evidence, hold: float, fail: float, sentences: int) -> Decision:
    """Whether most layers lose nothing significant (p < 0.01) with the best of their heads alone.

    Value: their share, of all layers of the model. Holds from `hold` on, on at least as many
    sentences; fails below `fail`. Test sets with fewer as in `few_heads_matter`.
    """

    def decide(model: pd.DataFrame) -> Decision:
        fine = int((~((model["delta"] < 0) & (model["p"] < LEVEL))).sum())
        share, reason = fine / len(model), f"{fine} of {len(model)} layers"
        return _judged(model, sentences, reason, share >= hold, share < fail, share)

    return by_model(_with_sentences(evidence, _layers(evidence), sentences), TEST, decide)


def last_cross_layer_breaks(evidence: Evidence, loss: float, small: float) -> Decision:
    """Whether the last decoder-encoder layer loses most with one head, and at least `loss` BLEU.

    Fails if it loses less than `small`, or if another layer clearly loses more.
    """

    def decide(model: pd.DataFrame) -> Decision:
        cross = model[model["kind"] == "dec_enc"]
        last = cross.loc[cross["layer"].idxmax()]
        others = model.drop(last.name)
        worst = (last["delta_high"] < others["delta_low"]).all()
        outdone = (others["delta_high"] < last["delta_low"]).any()
        reason = f"the others lose up to {-others['delta'].min():.2f}"
        holds = worst and last["delta_high"] <= -loss
        fails = outdone or last["delta_low"] > -small
        return judge(holds, fails, reason, change_of(last, tested=holds))

    return by_model(_layers(evidence), TEST, decide)
