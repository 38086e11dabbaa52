# Needs: <bpe>, <text>, models in <trained>, rankings in <heads>.
# Makes: <masking>/ablation.csv, pruning_profile.csv, training_profile.csv and share_speed.csv of the
#        runs in `ablation.runs`; nothing if no run is named there.

PROFILED = ("steps", "normalise", "reestimate")


use rule masking as ablation with:
    """Translate without each head of one model, and with one head alone in each of its layers."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<trained>"),
        texts=plan.ablation.all_texts,
    output:
        scores="<masking>/ablation.csv",
        about="<masking>/ablation.json",
    wildcard_constraints:
        run=alternatives(ablated),
    params:
        given=[],
        settings=plan.ablation.flags("sentences"),
    message:
        "Removing each head of {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}"


use rule ablation as pruning_profile with:
    """Translate with more and more heads of one model pruned: importance, effect, random."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<trained>"),
        texts=plan.ablation.first_text,
        drawn=plan.ablation.drawn_text() if plan.ablation.section.reestimate else [],
        importance="<heads>/importance.csv",
        ablation=rules.ablation.output.scores,
    output:
        scores="<masking>/pruning_profile.csv",
        about="<masking>/pruning_profile.json",
        areas="<masking>/pruning_profile_areas.csv",
        about_areas="<masking>/pruning_profile_areas.json",
    params:
        given=given("seed", "importance", "ablation"),
        settings=plan.ablation.flags("sentences", "draws", *PROFILED),
        more=[*plan.ablation.rerank_flags(), *plan.section("decode")],
    message:
        "Pruning {wildcards.run} on {wildcards.pair} step by step, seed {wildcards.seed}"


use rule ablation as training_profile with:
    """Prune one model at points of its training: importance at each, and BLEU by step."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<trained>"),
        texts=plan.ablation.first_text,
        drawn=plan.ablation.drawn_text(),
        checkpoints=plan.ablation.checkpoints(),
    output:
        scores="<masking>/training_profile.csv",
        about="<masking>/training_profile.json",
        heads="<masking>/training_profile_heads.csv",
        about_heads="<masking>/training_profile_heads.json",
    params:
        given=given("checkpoints"),
        settings=plan.ablation.flags("sentences", "updates", *PROFILED),
        more=[*plan.ablation.rerank_flags(), *plan.section("decode")],
    message:
        "Pruning {wildcards.run} during training on {wildcards.pair}, seed {wildcards.seed}"


rule share_speed:
    """Time one model without more and more of its heads, really removed; nothing else runs."""
    input:
        multiext("<bpe>/", *TIMING),
        **model_in("<trained>"),
        importance="<heads>/importance.csv",
    output:
        times="<masking>/share_speed.csv",
        about="<masking>/share_speed.json",
    wildcard_constraints:
        run=alternatives(ablated),
    threads: all_cores
    resources:
        **plan.device("decode", mem_mb=3000),
    params:
        **FOLDERS,
        ablation=plan.ablation.flags("normalise", "timed"),
        settings=plan.section("speed", "decode"),
    message:
        "Timing {wildcards.run} on {wildcards.pair} without some heads, seed {wildcards.seed}"
    shell:
        "python scripts/share_speed.py --model {params.model:q} --importance {input.importance:q}"
        " --bpe {params.bpe:q} --out {output.times:q} {params.ablation:q}"
        " {params.settings:q} > {log:q} 2>&1"
