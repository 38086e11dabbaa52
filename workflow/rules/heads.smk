# Needs: <results>/train/<pair>/<run>/seed<k>/model, <text>/<pair> and <bpe>/<pair>.
# Makes: <results>/heads/<pair>/<run>/seed<k>/importance.csv, which ranks the model's heads;
#        <results>/masking/<pair>/<run>/seed<k>/headmask.csv, BLEU with heads masked.


rule importance:
    """Measure the importance of every head of one model."""
    input:
        multiext("<bpe>/{pair}/", *with_text(plan.settings.importance.data)),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
    output:
        values="<results>/heads/{pair}/{run}/seed{seed}/importance.csv",
        about="<results>/heads/{pair}/{run}/seed{seed}/importance.json",
    log:
        "<logs>/importance/{pair}.{run}.seed{seed}.log",
    priority: lambda w: plan.pruning.ranking_urgency(w)
    threads: plan.settings.importance.threads
    resources:
        gpu=plan.gpus("importance"),
        mem_mb=2000,
    params:
        code=code("scripts/importance.py"),
        settings=plan.section("importance"),
        model=subpath(input.model, parent=True),
        bpe=subpath(input[0], parent=True),
    message:
        "Measuring the heads of {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/importance.py --model {params.model:q} --bpe {params.bpe:q}"
        " --out {output.values:q} {params.settings:q} > {log:q} 2>&1"


rule masking:
    """Translate with one model under every mask: groups by importance, cumulative, random."""
    input:
        multiext("<bpe>/{pair}/", *SEGMENTERS),
        texts=lambda w: plan.text(w.pair, plan.masking_tests(w.pair), "src", "tgt"),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
        own="<results>/heads/{pair}/{run}/seed{seed}/importance.csv",
        baseline=lambda w: plan.baseline_importance(w),
    output:
        scores="<results>/masking/{pair}/{run}/seed{seed}/headmask.csv",
        about="<results>/masking/{pair}/{run}/seed{seed}/headmask.json",
    log:
        "<logs>/masking/{pair}.{run}.seed{seed}.log",
    threads: plan.settings.decode.threads
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=3000,
    params:
        code=code("scripts/masking.py"),
        settings=lambda w: plan.masking_flags(w.pair),
        decode=plan.section("decode"),
        baseline=lambda w, input: ["--baseline", *input.baseline] if input.baseline else [],
        model=subpath(input.model, parent=True),
        bpe=subpath(input[0], parent=True),
        text=f"data/text/{plan.name}/{{pair}}",
    message:
        "Masking heads of {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/masking.py --pair {wildcards.pair:q} --seed {wildcards.seed}"
        " --model {params.model:q} --bpe {params.bpe:q} --text {params.text:q}"
        " --own {input.own:q} {params.baseline:q} --out {output.scores:q}"
        " {params.settings:q} {params.decode:q} > {log:q} 2>&1"
