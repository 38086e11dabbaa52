# Needs: <bpe>, <text>, models in <trained>, rankings in <heads>.
# Makes: <masking>/loss_change.csv, ablation.csv, measures.csv, pruning_profile.csv, training_profile.csv,
#        share_speed.csv and importance_speed.csv of the runs in `ablation.runs`; nothing if no run is named
#        there, no measures unless `ablation.measures` asks, and no times without batch sizes in `speed`.

PROFILED = ("steps", "normalise")
DRAWN = each(f"<bpe>/{plan.settings.importance.data}.{{side}}", side=SIDES)


use rule importance as loss_change with:
    """Measure how the loss changes without each head of one model, on the pairs of importance."""
    output:
        values="<masking>/loss_change.csv",
        about="<masking>/loss_change.json",
    priority: 0
    params:
        script="scripts/importance.py",
        settings=["--measure", "loss_change", *plan.section("importance")],


use rule masking as ablation with:
    """Translate without each head of one model, and with one head alone in each of its layers."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<trained>"),
        text=each("<text>/{test}.{side}", test=plan.ablation_texts, side=SIDES),
    output:
        scores="<masking>/ablation.csv",
        about="<masking>/ablation.json",
    params:
        given=given("text/"),
        settings=plan.ablation_flags("sentences"),


use rule importance as more_measures with:
    """Measure the heads of one model in more ways, on the pairs of importance."""
    output:
        values="<masking>/measures.csv",
        about="<masking>/measures.json",
        fisher="<masking>/measures_fisher.csv",
        about_fisher="<masking>/measures_fisher.json",
        means="<masking>/measures_means.csv",
        about_means="<masking>/measures_means.json",
    priority: 0
    params:
        settings=plan.section("importance", "measures"),


use rule ablation as pruning_profile with:
    """Translate with more and more heads of one model pruned: importance, effect, random."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<trained>"),
        text=each("<text>/{test}.{side}", test=plan.first_ablation_test, side=SIDES),
        drawn=DRAWN if plan.settings.ablation.signed else [],
        importance="<heads>/importance.csv",
        ablation=rules.ablation.output.scores,
        measured=rules.more_measures.output.values if plan.measured else [],
        beside_measured=rules.more_measures.output[2::2] if plan.measured else [],
    output:
        scores="<masking>/pruning_profile.csv",
        about="<masking>/pruning_profile.json",
        areas="<masking>/pruning_profile_areas.csv",
        about_areas="<masking>/pruning_profile_areas.json",
    params:
        given=given("text/", "seed", "importance", "ablation", "measured"),
        settings=plan.ablation_flags("sentences", "draws", "signed", *PROFILED),
        more=[*plan.rerank_flags(), *plan.own_search()],


use rule ablation as training_profile with:
    """Prune one model at points of its training: importance at each, and BLEU by step."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<trained>"),
        text=each("<text>/{test}.{side}", test=plan.first_ablation_test, side=SIDES),
        drawn=DRAWN,
        checkpoints=[f"<trained>/updates/{n}.safetensors" for n in plan.settings.ablation.updates],
    output:
        scores="<masking>/training_profile.csv",
        about="<masking>/training_profile.json",
        heads="<masking>/training_profile_heads.csv",
        about_heads="<masking>/training_profile_heads.json",
    params:
        given=given("text/", "checkpoints"),
        settings=plan.ablation_flags("sentences", "updates", *PROFILED),
        more=[*plan.rerank_flags(), *plan.own_search()],


rule share_speed:
    """Time one model without more and more of its heads, really removed; nothing else runs."""
    input:
        multiext("<bpe>/", *TIMING),
        **model_in("<trained>"),
        importance="<heads>/importance.csv",
    output:
        times="<masking>/share_speed.csv",
        about="<masking>/share_speed.json",
    threads: session.all_cores
    resources:
        **needs.timing("decode"),
    params:
        bpe=FOLDERS["bpe"],
        models=given("model/", "importance"),
        ablation=plan.ablation_flags("normalise", "timed"),
        settings=[*plan.section("speed"), *plan.own_search()],
    shell:
        "python {params.script} {params.models:q} --bpe {params.bpe:q} --out {output.times:q}"
        " {params.ablation:q} {params.settings:q} > {log:q} 2>&1"


use rule importance as importance_speed with:
    """Time importance beside training on the same sentences; nothing else runs."""
    output:
        values="<masking>/importance_speed.csv",
        about="<masking>/importance_speed.json",
    priority: 0
    threads: session.all_cores
    resources:
        **needs.timing("importance"),
    params:
        settings=plan.section("importance", "speed"),
