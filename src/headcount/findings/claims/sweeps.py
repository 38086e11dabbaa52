"""Decisions on gates: how many heads they leave, which, and what that costs."""

from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd

from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.findings.claims.estimates import EFFECT, change_of, ranks_agree, small_loss
from headcount.findings.claims.evidence import MODEL, Evidence
from headcount.findings.claims.roles import heads_of_baseline
from headcount.findings.claims.verdicts import (
    HOLDS,
    NO_RUN,
    NOT_APPLICABLE,
    TRAINING,
    UNDECIDED,
    UNIT,
    Decision,
    by_model,
    contrasts,
    judge,
    undecided,
)
from headcount.findings.results import BASE
from headcount.findings.significance import ALPHA

_SWEEP = [*UNIT, "test_set"]
_PRUNED = ["test_set", "how", "scope", "lambda", "start", "heads"]
_PRUNED += ["heads_left", "scope_heads", "scope_left", "enc_self_layers", "polarised", "bleu"]
_PRUNED += EFFECT


def _gates(evidence: Evidence, start: str = BASE) -> pd.DataFrame:
    """Gates runs from one start, a test set a row, with `gone`: the share of the scope's heads."""
    rows = evidence.rows("tables/voita_pruning.csv", _PRUNED)
    chosen = rows[(rows["how"] == "gates") & (rows["start"] == start)].astype({"lambda": float})
    gone = 1 - chosen["scope_left"].astype(float) / chosen["scope_heads"].astype(float)
    return chosen.assign(gone=gone)


def _pruned(evidence: Evidence) -> pd.DataFrame:
    """Gates on the baseline that closed heads for a price: controls (λ = 0) may lose some, too."""
    rows = _gates(evidence)
    return rows[(rows["lambda"] > 0) & (rows["gone"] > 0)]


def prunable_by_gates(
    evidence: Evidence,
    scope: str,
    share: float,
    limit: float,
    bound: float,
    fail_share: float,
    fail_loss: float,
) -> Decision:
    """Whether gates can close this share of the scope's heads at a small loss, see `small_loss`.

    Against the model that was fine-tuned as long with λ = 0. Value: the BLEU change of the run that
    closes most of those that do; without one, of the first that closes the share. Fails if all that
    close the share clearly lose more than `fail_loss`, and so does one that closes up to
    `fail_share`: a run between them would lose as much.
    """
    rows = _pruned(evidence)

    def decide(model: pd.DataFrame) -> Decision:
        far = model[model["gone"] >= share]
        if far.empty:
            return undecided(f"gates close {model['gone'].max():.0%} of the heads at most", 1)
        small = far[[small_loss(row, limit, bound) for row in far.to_dict("records")]]
        lost = model[model["delta_high"] < -fail_loss]
        fails = bool((lost["gone"] <= fail_share).any() and set(far.index) <= set(lost.index))
        row = small.loc[small["gone"].idxmax()] if len(small) else far.loc[far["gone"].idxmin()]
        reason = f"{row['run']} on {row['test_set']}, {row['gone']:.0%} of the heads gone"
        found = change_of(row, tested=False) + [lost["p"].max()] * fails
        return judge(len(small) > 0, fails, reason, found)

    return by_model(rows[rows["scope"] == scope], _SWEEP, decide)


def gates_settle(evidence: Evidence, share: float, few: float, moving: float) -> Decision:
    """Whether at least this share of gates ends nearly open or closed, at every λ that prunes.

    Value: the smallest share of polarised gates of all runs. Fails if it is below `few` in a run
    whose gates had settled: mean change of P(open) over the last interval below `moving`.
    """
    pruning = _pruned(evidence).drop_duplicates([*MODEL]).dropna(subset="polarised")
    moves = _last_moves(evidence)

    def decide(model: pd.DataFrame) -> Decision:
        polarised = model["polarised"].astype(float)
        worst = model.loc[polarised.idxmin()]
        moved = moves.get(tuple(worst[MODEL]), nan)
        reason = f"{worst['run']}; P(open) moved by {moved:.3f} over its last interval"
        least = float(polarised.min())
        return judge(least >= share, least < few and moved < moving, reason, (least,))

    return by_model(pruning, [*UNIT, "scope"], decide, np.nanmin)


def _last_moves(evidence: Evidence) -> dict[tuple, float]:
    """Mean change of P(open) between the last two records of each gates run."""
    columns = ["step", "kind", "layer", "head", "p_open"]
    moves = {}
    for key, rows in evidence.rows("figures/voita_gates.csv", columns).groupby(MODEL):
        wide = rows.pivot_table("p_open", "step", columns[1:4])
        if len(wide) > 1:
            moves[key] = float((wide.iloc[-1] - wide.iloc[-2]).abs().mean())
    return moves


def more_penalty_fewer_heads(evidence: Evidence, rho: float, counts: int) -> Decision:
    """Whether heads left fall with λ (Spearman at most `rho`), through as many different counts.

    In every scope, p by shuffling λ within all of them; the counts are asked of scopes with as many
    λ, and trainings without one are left out, if there are others. Value: the weakest of all.
    Fails if, with as many λ, none is below 0.
    """
    rows = _gates(evidence).drop_duplicates([*MODEL])

    def decide(model: pd.DataFrame) -> Decision:
        left, scopes = model["scope_left"].astype(float), model["scope"]
        found, p = ranks_agree(model["lambda"], left, scopes)
        sizes = left.groupby(scopes).agg(points="size", counts="nunique")
        wide = sizes.loc[sizes["points"] >= counts, "counts"]
        told = [f"{each.counts} counts from {each.points} λ" for each in sizes.itertuples()]
        reason = f"{', '.join(told)}; needs {counts}"
        fails = found.min() >= 0
        numbers = (found.max(), nan, nan, nan if fails else p)
        if wide.empty:
            return Decision(NOT_APPLICABLE, f"between the limits: {reason}", *numbers, seeds=1)
        holds = (wide >= counts).all() and found.max() <= rho and p < ALPHA
        return judge(bool(holds), bool(fails), reason, numbers)

    whole = by_model(rows, UNIT, decide, np.nanmax)
    return replace(whole, verdict=UNDECIDED) if whole.verdict == NOT_APPLICABLE else whole


def layers_may_empty(evidence: Evidence, loss: float, collapse: float) -> Decision:
    """Whether a model without any head in some encoder layer is within `loss` BLEU.

    Value: the smallest BLEU change of such a model. Fails if each clearly loses more than the share
    `collapse` of BLEU.
    """
    rows = _gates(evidence)
    rows = rows[rows["lambda"] > 0]
    emptied = rows["enc_self_layers"].astype(str).map(lambda cell: "0" in cell.split())

    def decide(model: pd.DataFrame) -> Decision:
        empty = model[emptied[model.index]]
        if empty.empty:
            return undecided("no layer was emptied", 1)
        best = empty.loc[empty["delta"].idxmax()]
        whole = empty["bleu"] - empty["delta"]
        fails = bool((empty["delta_high"] < -collapse * whole).all())
        reason = f"{best['run']}, heads by layer {best['enc_self_layers']}"
        found = change_of(best, tested=fails)
        return judge(best["delta_low"] >= -loss, fails, reason, found)

    return by_model(rows, _SWEEP, decide)


def fine_tuning_wins(evidence: Evidence, least: float, near: float) -> Decision:
    """Whether gates on a trained model keep more BLEU than gates from random weights.

    At heads left that differ by at most the share `near` of the scope; over trainings, of each the
    mean of its scopes, with a mean above `least`. Not of controls: gates without a price may close
    some heads as well. How far the controls of these trainings differ, which is no price's doing,
    stands in the reason.
    """
    both = _gates(evidence, RANDOM_WEIGHTS).merge(
        _gates(evidence), on=[*_SWEEP, "scope"], suffixes=("", "_tuned")
    )
    both["gain"] = (both["bleu_tuned"] - both["bleu"]).astype(float)
    free = (both["lambda"] == 0) & (both["lambda_tuned"] == 0)
    priced = (both["lambda"] > 0) & (both["lambda_tuned"] > 0)
    alike = (both["gone"] - both["gone_tuned"]).abs() <= near
    pruned = both[priced & alike & (both["gone"] > 0) & (both["gone_tuned"] > 0)]
    keys = [*UNIT, "scope"]
    gains = pruned.groupby(keys)["gain"].mean().groupby(UNIT).mean()
    found = _gains({"fine-tuned to random weights": gains}, least)
    controls = both[free].merge(pruned[keys].drop_duplicates(), on=keys)
    if controls.empty:
        return found
    of_scopes = controls.groupby(keys)["gain"].mean()
    means = of_scopes.groupby(UNIT).mean().groupby(TRAINING).mean().groupby("pair").mean()
    told = ", ".join(f"{mean:+z.2f} BLEU ({pair})" for pair, mean in means.items())
    return replace(found, reason=f"{found.reason}; of controls (λ = 0): {told}")


def pruned_beats_scratch(evidence: Evidence) -> Decision:
    """Whether a pruned model has more BLEU than one of the same heads trained from scratch.

    Of the configuration with the fewest heads left, over trainings.
    """
    rows = _tuned_alike(evidence)
    chosen = rows[rows["contender"] == "scratch"]
    runs = chosen.groupby(["experiment", "pair", "gates_run"])["heads_left"].mean()
    if len(runs):
        sparsest = runs.groupby(["experiment", "pair"]).idxmin().tolist()
        keys = chosen[["experiment", "pair", "gates_run"]].itertuples(index=False, name=None)
        chosen = chosen[[key in sparsest for key in keys]]
    gains = -chosen.astype({"delta": float}).groupby(UNIT)["delta"].mean()
    return _gains({"pruned to scratch": gains}, 0.0)


def _tuned_alike(evidence: Evidence) -> pd.DataFrame:
    """What stands beside gates on the baseline, tuned as they are, a test set a row."""
    columns = ["test_set", "comparison", "contender", "gates_run", "heads_left", "delta"]
    rows = evidence.rows("tables/voita_comparison.csv", columns)
    gates = evidence.rows("tables/voita_pruning.csv", _PRUNED)
    others = gates.loc[(gates["how"] == "gates") & (gates["start"] != BASE), "run"]
    return rows[(rows["comparison"] == "tuned") & ~rows["gates_run"].isin(others)]


def _gains(gains: dict[str, pd.Series], least: float) -> Decision:
    """Whether gains over trainings are all above 0, the smallest with a mean above `least`."""
    found = contrasts({name: -each for name, each in gains.items()}, lambda value: -value)
    low, high = sorted((found.low, found.high))
    verdict = found.verdict
    if verdict == HOLDS and not found.value > least:
        verdict = UNDECIDED
    return Decision(verdict, found.reason, found.value, low, high, found.p, found.seeds)


def interpretable_suffice(evidence: Evidence, limit: float, bound: float, fail: float) -> Decision:
    """Whether as few encoder heads as have a function do, at a small loss of BLEU.

    Value: the BLEU change of the gates run that does and leaves most heads; without one, of that
    which leaves most of those with as few heads. Fails if all with as few clearly lose more than
    `fail`, and so does one that leaves as many heads, or more.
    """
    heads = heads_of_baseline(evidence)
    labelled = (heads["function"] != "").groupby([heads[name] for name in UNIT]).sum()
    rows = _pruned(evidence)
    rows = rows[
        (rows["scope"] == "enc_self") & pd.MultiIndex.from_frame(rows[UNIT]).isin(labelled.index)
    ]

    def decide(model: pd.DataFrame) -> Decision:
        count = int(labelled[tuple(model[UNIT].iloc[0])])
        if not count:
            return Decision(NOT_APPLICABLE, "no head has a function", seeds=1)
        few = model[model["scope_left"] <= count]
        if few.empty:
            return undecided(f"{count} heads have a function; no run leaves as few", 1)
        fine = few[[small_loss(row, limit, bound) for row in few.to_dict("records")]]
        lost = model[model["delta_high"] < -fail]
        fails = bool((lost["scope_left"] >= count).any() and set(few.index) <= set(lost.index))
        chosen = fine if len(fine) else few
        row = chosen.loc[chosen["scope_left"].idxmax()]
        reason = f"{count} heads have a function; {row['run']} leaves {row['scope_left']}"
        found = change_of(row, tested=False) + [lost["p"].max()] * fails
        return judge(len(fine) > 0, fails, reason, found)

    return by_model(rows, _SWEEP, decide)


def gates_beat_ranking(evidence: Evidence, shares: list[float], near: float) -> Decision:
    """Whether gates keep more BLEU than ranking by importance, tuned alike, at these shares pruned.

    A run counts for the share that it is within `near` of. Value: gates minus ranked, over
    trainings, where it is smallest. Fails if gates keep less at one share.
    """
    rows = _tuned_alike(evidence)
    ranked = rows[rows["contender"] == "ranked"]
    if ranked.empty:
        return undecided(NO_RUN)
    heads = evidence.rows("tables/voita_pruning.csv", _PRUNED).groupby("experiment")["heads"].max()
    gone = 1 - ranked["heads_left"].astype(float) / ranked["experiment"].map(heads).astype(float)
    gains = {}
    for share in shares:
        at = ranked[(gone - share).abs() <= near].astype({"delta": float})
        if at.empty:
            return undecided(f"{NO_RUN} of both with {share:.0%} of the heads gone")
        gains[f"{share:.0%} pruned"] = -at.groupby(UNIT)["delta"].mean()
    return _gains(gains, 0.0)
