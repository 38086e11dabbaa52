"""The functions that decide claims, by the names that the ledger gives them."""

from collections.abc import Callable
from dataclasses import replace
from math import isnan
from pathlib import Path

from headcount.findings.claims import (
    agreement,
    early,
    groups,
    headmask,
    relevance,
    retained,
    roles,
    single,
    steps,
    sweeps,
)
from headcount.findings.claims.evidence import FLOOR, Evidence
from headcount.findings.claims.ledger import Claim
from headcount.findings.claims.verdicts import NO_RUN, Decision, undecided

DECISIONS: dict[str, Callable[..., Decision]] = {
    each.__name__: each
    for each in (
        agreement.all_measures_agree,
        agreement.measures_agree,
        agreement.more_heads_better,
        agreement.relevant_are_known,
        agreement.subjects_by_domain,
        early.early_heads_stay,
        groups.lower_half_matters_little,
        groups.top_group_hurts_most,
        groups.unimportant_first_keeps_more,
        headmask.gap_closes,
        headmask.importance_falls,
        headmask.importance_flatter,
        headmask.masked_evenly,
        headmask.method_gains,
        headmask.no_super_heads,
        headmask.prunes_further,
        headmask.random_over_important,
        headmask.steadier,
        headmask.top_group_spared,
        relevance.few_heads_relevant,
        relevance.one_head_dominates,
        relevance.rare_head_leads,
        retained.decoder_layers_in_order,
        retained.functions_drift,
        retained.functions_stay,
        retained.functions_survive,
        retained.kinds_in_order,
        retained.place_of_decoder_self,
        roles.positional_heads,
        roles.positional_heads_lead,
        roles.positional_heads_sure,
        roles.rare_word_head,
        roles.several_heads_per_relation,
        roles.syntactic_heads,
        single.effects_transfer,
        single.few_heads_matter,
        single.last_cross_layer_breaks,
        single.one_head_suffices,
        single.single_heads_break,
        single.some_heads_harm,
        steps.area_compared,
        steps.attention_share,
        steps.concentrates,
        steps.early_distinction,
        steps.faster_without,
        steps.importance_is_cheap,
        steps.one_per_layer_fails,
        steps.prunable_share,
        sweeps.fine_tuning_wins,
        sweeps.gates_beat_ranking,
        sweeps.gates_settle,
        sweeps.interpretable_suffice,
        sweeps.layers_may_empty,
        sweeps.more_penalty_fewer_heads,
        sweeps.prunable_by_gates,
        sweeps.pruned_beats_scratch,
    )
}


def decide(claim: Claim, evidence: Evidence) -> tuple[Decision, list[Path]]:
    """The verdict on a claim before its family is corrected for, and the files that it came from.

    The files are those that were read, whatever they hold.
    """
    evidence.taken.clear()
    evidence.compared.clear()
    decision = DECISIONS[claim.decide](evidence, **claim.limits)
    if decision.reason == NO_RUN and evidence.untrained:
        decision = undecided(f"{NO_RUN} with a baseline of BLEU {FLOOR:g} or more")
    if not isnan(decision.value):
        failed = sorted(evidence.collapsed & evidence.compared)
        decision = replace(decision, collapsed=_name(failed))
    return decision, list(dict.fromkeys(evidence.taken))


def _name(models: list[tuple]) -> str:
    """Models as people name them, each once: 'impt-6, seed 1 of multi30k.en-de'."""
    words = (f"{run}, seed {int(seed)} of {pair}" for _, pair, run, seed in models)
    return "; ".join(dict.fromkeys(words))
