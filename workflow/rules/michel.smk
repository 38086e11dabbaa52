# Needs: <bpe>/<pair>, <text>/<pair>, models of <results>/train, rankings of <results>/heads.
# Makes: <results>/masking/<pair>/<run>/seed<k>/ablation.csv, pruning_profile.csv,
#        training_profile.csv and share_speed.csv of the runs in `ablation.runs`; nothing if no run
#        is named there.

ABLATED = alternatives(ablated)
PROFILED = ("steps", "normalise", "reestimate")


rule ablation:
    """Translate without each head of one model, and with one head alone in each of its layers."""
    input:
        multiext("<bpe>/{pair}/", *SEGMENTERS),
        texts=lambda w: plan.ablation.all_texts(w.pair),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
    output:
        scores="<results>/masking/{pair}/{run}/seed{seed}/ablation.csv",
        about="<results>/masking/{pair}/{run}/seed{seed}/ablation.json",
    log:
        "<logs>/ablation/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=ABLATED,
    threads: plan.settings.decode.threads
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=3000,
    params:
        code=code("scripts/ablation.py"),
        settings=lambda w: plan.ablation.flags(w.pair, "sentences"),
        decode=plan.section("decode"),
        model=subpath(input.weights, parent=True),
        bpe=subpath(input[0], parent=True),
        text=f"data/text/{plan.name}/{{pair}}",
    message:
        "Removing each head of {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/ablation.py --pair {wildcards.pair:q} --model {params.model:q}"
        " --bpe {params.bpe:q} --text {params.text:q} --out {output.scores:q}"
        " {params.settings:q} {params.decode:q} > {log:q} 2>&1"


rule pruning_profile:
    """Translate with more and more heads of one model pruned: importance, effect, random."""
    input:
        multiext("<bpe>/{pair}/", *SEGMENTERS),
        texts=lambda w: plan.ablation.first_text(w.pair),
        drawn=lambda w: plan.ablation.drawn_text(w.pair) if plan.ablation.own.reestimate else [],
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
        importance="<results>/heads/{pair}/{run}/seed{seed}/importance.csv",
        ablation=rules.ablation.output.scores,
    output:
        scores="<results>/masking/{pair}/{run}/seed{seed}/pruning_profile.csv",
        about="<results>/masking/{pair}/{run}/seed{seed}/pruning_profile.json",
        areas="<results>/masking/{pair}/{run}/seed{seed}/pruning_profile_areas.csv",
        about_areas="<results>/masking/{pair}/{run}/seed{seed}/pruning_profile_areas.json",
    log:
        "<logs>/pruning_profile/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=ABLATED,
    threads: plan.settings.decode.threads
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=3000,
    params:
        code=code("scripts/pruning_profile.py"),
        settings=lambda w: plan.ablation.flags(w.pair, "sentences", "draws", *PROFILED),
        importance=plan.ablation.rerank_flags(),
        decode=plan.section("decode"),
        model=subpath(input.weights, parent=True),
        bpe=subpath(input[0], parent=True),
        text=f"data/text/{plan.name}/{{pair}}",
    message:
        "Pruning {wildcards.run} on {wildcards.pair} step by step, seed {wildcards.seed}"
    shell:
        "python scripts/pruning_profile.py --pair {wildcards.pair:q} --seed {wildcards.seed}"
        " --model {params.model:q} --bpe {params.bpe:q} --text {params.text:q}"
        " --importance {input.importance:q} --ablation {input.ablation:q}"
        " --out {output.scores:q} {params.settings:q} {params.importance:q}"
        " {params.decode:q} > {log:q} 2>&1"


rule training_profile:
    """Prune one model at points of its training: importance at each, and BLEU by step."""
    input:
        multiext("<bpe>/{pair}/", *SEGMENTERS),
        texts=lambda w: plan.ablation.first_text(w.pair),
        drawn=lambda w: plan.ablation.drawn_text(w.pair),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
        checkpoints=lambda w: plan.ablation.checkpoints(w),
    output:
        scores="<results>/masking/{pair}/{run}/seed{seed}/training_profile.csv",
        about="<results>/masking/{pair}/{run}/seed{seed}/training_profile.json",
        heads="<results>/masking/{pair}/{run}/seed{seed}/training_profile_heads.csv",
        about_heads="<results>/masking/{pair}/{run}/seed{seed}/training_profile_heads.json",
    log:
        "<logs>/training_profile/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=ABLATED,
    threads: plan.settings.decode.threads
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=3000,
    params:
        code=code("scripts/training_profile.py"),
        settings=lambda w: plan.ablation.flags(w.pair, "sentences", "updates", *PROFILED),
        importance=plan.ablation.rerank_flags(),
        decode=plan.section("decode"),
        model=subpath(input.weights, parent=True),
        bpe=subpath(input[0], parent=True),
        text=f"data/text/{plan.name}/{{pair}}",
    message:
        "Pruning {wildcards.run} during training on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/training_profile.py --pair {wildcards.pair:q} --model {params.model:q}"
        " --checkpoints {input.checkpoints:q} --bpe {params.bpe:q} --text {params.text:q}"
        " --out {output.scores:q} {params.settings:q} {params.importance:q}"
        " {params.decode:q} > {log:q} 2>&1"


rule share_speed:
    """Time one model without more and more of its heads, really removed; nothing else runs."""
    input:
        multiext("<bpe>/{pair}/", *TIMING),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
        importance="<results>/heads/{pair}/{run}/seed{seed}/importance.csv",
    output:
        times="<results>/masking/{pair}/{run}/seed{seed}/share_speed.csv",
        about="<results>/masking/{pair}/{run}/seed{seed}/share_speed.json",
    log:
        "<logs>/share_speed/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=ABLATED,
    threads: all_cores
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=3000,
    params:
        code=code("scripts/share_speed.py"),
        ablation=lambda w: plan.ablation.flags(w.pair, "normalise", "timed"),
        settings=plan.section("speed", "decode"),
        model=subpath(input.weights, parent=True),
        bpe=subpath(input[0], parent=True),
    message:
        "Timing {wildcards.run} on {wildcards.pair} without some heads, seed {wildcards.seed}"
    shell:
        "python scripts/share_speed.py --model {params.model:q} --importance {input.importance:q}"
        " --bpe {params.bpe:q} --out {output.times:q} {params.ablation:q}"
        " {params.settings:q} > {log:q} 2>&1"
