# Needs: <bpe>/<pair>, <text>/<pair>, models of <results>/train, rankings of <results>/heads.
# Makes: <results>/prune/<pair>/<run>/seed<k> of every pruned run: the smaller model, its curve and
#        which heads it has; <results>/prune/<pair>/speed/seed<k>/speed.csv, how fast they are;
#        <results>/masking/<pair>/<run>/seed<k>/untuned_masking.csv, BLEU of the models they start
#        from, as many heads masked. Translations and scores are made by the rules of train.smk.


rule gates:
    """Fine-tune a trained model with a gate on every head; remove the heads that close."""
    input:
        multiext("<bpe>/{pair}/", *TRAINING),
        start=lambda w: plan.pruning.start_model(w),
    output:
        weights="<results>/prune/{pair}/{run}/seed{seed}/model/weights.safetensors",
        model="<results>/prune/{pair}/{run}/seed{seed}/model/model.json",
        run="<results>/prune/{pair}/{run}/seed{seed}/run.json",
        curves="<results>/prune/{pair}/{run}/seed{seed}/curves.csv",
        heads="<results>/prune/{pair}/{run}/seed{seed}/heads.csv",
        gates="<results>/prune/{pair}/{run}/seed{seed}/gates.csv",
    log:
        "<logs>/gates/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=alternatives(plan.pruning.named("gates")),
    priority: lambda w: plan.pruning.urgency(w)
    threads: plan.settings.train.threads
    resources:
        gpu=plan.gpus("train"),
        mem_mb=3000,
    params:
        code=code("scripts/gates.py"),
        settings=plan.section("train", "gates"),
        bpe=subpath(input[0], parent=True),
        init_from=lambda w: plan.pruning.start_folder(w),
        folder=subpath(output.curves, parent=True),
        # Not an output, so that Snakemake leaves it alone when it cleans up after a failed job.
        state=f"results/{plan.name}/state/{{pair}}.{{run}}.seed{{seed}}",
    message:
        "Fine-tuning {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}; curve in {log}"
    shell:
        "python scripts/gates.py --run {wildcards.run:q} --init-from {params.init_from:q}"
        " --bpe {params.bpe:q} --seed {wildcards.seed} --out {params.folder:q}"
        " --state {params.state:q} {params.settings:q} > {log:q} 2>&1"


rule scratch:
    """Train the heads that a gates run kept from a random start."""
    input:
        multiext("<bpe>/{pair}/", *TRAINING),
        heads=lambda w: plan.pruning.gates_heads(w),
    output:
        weights="<results>/prune/{pair}/{run}/seed{seed}/model/weights.safetensors",
        model="<results>/prune/{pair}/{run}/seed{seed}/model/model.json",
        run="<results>/prune/{pair}/{run}/seed{seed}/run.json",
        curves="<results>/prune/{pair}/{run}/seed{seed}/curves.csv",
        heads="<results>/prune/{pair}/{run}/seed{seed}/heads.csv",
    log:
        "<logs>/scratch/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=alternatives(plan.pruning.named("scratch")),
    priority: lambda w: plan.pruning.urgency(w)
    threads: plan.settings.train.threads
    resources:
        gpu=plan.gpus("train"),
        mem_mb=3000,
    params:
        code=code("scripts/scratch.py"),
        settings=plan.section("model", "train"),
        bpe=subpath(input[0], parent=True),
        folder=subpath(output.curves, parent=True),
        state=f"results/{plan.name}/state/{{pair}}.{{run}}.seed{{seed}}",
    message:
        "Training {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}; curve in {log}"
    shell:
        "python scripts/scratch.py --run {wildcards.run:q} --kept {input.heads:q}"
        " --bpe {params.bpe:q} --seed {wildcards.seed} --out {params.folder:q}"
        " --state {params.state:q} {params.settings:q} > {log:q} 2>&1"


rule fine_tune:
    """Remove as many heads as a gates run did, by importance or at random; fine-tune the rest."""
    input:
        multiext("<bpe>/{pair}/", *TRAINING),
        start=lambda w: plan.pruning.start_model(w),
        heads=lambda w: plan.pruning.gates_heads(w),
        importance=lambda w: plan.pruning.importance(w),
    output:
        weights="<results>/prune/{pair}/{run}/seed{seed}/model/weights.safetensors",
        model="<results>/prune/{pair}/{run}/seed{seed}/model/model.json",
        run="<results>/prune/{pair}/{run}/seed{seed}/run.json",
        curves="<results>/prune/{pair}/{run}/seed{seed}/curves.csv",
        heads="<results>/prune/{pair}/{run}/seed{seed}/heads.csv",
    log:
        "<logs>/fine_tune/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=alternatives(plan.pruning.named("importance", "random")),
    priority: lambda w: plan.pruning.urgency(w)
    threads: plan.settings.train.threads
    resources:
        gpu=plan.gpus("train"),
        mem_mb=3000,
    params:
        code=code("scripts/fine_tune.py"),
        settings=plan.section("train", "gates"),
        importance=lambda w, input: (
            ["--importance", *input.importance] if input.importance else []
        ),
        bpe=subpath(input[0], parent=True),
        init_from=lambda w: plan.pruning.start_folder(w),
        folder=subpath(output.curves, parent=True),
        state=f"results/{plan.name}/state/{{pair}}.{{run}}.seed{{seed}}",
    message:
        "Fine-tuning {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}; curve in {log}"
    shell:
        "python scripts/fine_tune.py --run {wildcards.run:q} --init-from {params.init_from:q}"
        " --kept {input.heads:q} {params.importance:q} --bpe {params.bpe:q}"
        " --seed {wildcards.seed} --out {params.folder:q} --state {params.state:q}"
        " {params.settings:q} > {log:q} 2>&1"


rule untuned_masking:
    """Translate with as many heads masked as each gates run closed, and nothing fine-tuned."""
    input:
        multiext("<bpe>/{pair}/", *SEGMENTERS),
        texts=lambda w: plan.text(w.pair, plan.masking_tests(w.pair), "src", "tgt"),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
        importance="<results>/heads/{pair}/{run}/seed{seed}/importance.csv",
        gates=lambda w: plan.pruning.gates_heads_from(w),
    output:
        scores="<results>/masking/{pair}/{run}/seed{seed}/untuned_masking.csv",
        about="<results>/masking/{pair}/{run}/seed{seed}/untuned_masking.json",
    log:
        "<logs>/untuned_masking/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=alternatives(plan.pruning.starts()),
    threads: plan.settings.decode.threads
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=3000,
    params:
        code=code("scripts/untuned_masking.py"),
        model_settings=plan.section("model"),
        settings=lambda w: plan.masking_flags(w.pair),
        decode=plan.section("decode"),
        runs=lambda w: plan.pruning.gates_from(w.run),
        model=subpath(input.model, parent=True),
        bpe=subpath(input[0], parent=True),
        text=f"data/text/{plan.name}/{{pair}}",
    message:
        "Masking heads of {wildcards.run} without fine-tuning, on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/untuned_masking.py --pair {wildcards.pair:q} --seed {wildcards.seed}"
        " --model {params.model:q} --bpe {params.bpe:q} --text {params.text:q}"
        " --importance {input.importance:q} --runs {params.runs:q} --gates {input.gates:q}"
        " --out {output.scores:q} {params.model_settings:q} {params.settings:q}"
        " {params.decode:q} > {log:q} 2>&1"


rule speed:
    """Time the pruned models of a pair and seed beside the one they come from; nothing else runs."""
    input:
        multiext("<bpe>/{pair}/", *TIMING),
        models=lambda w: plan.pruning.timed_models(w),
    output:
        times="<results>/prune/{pair}/speed/seed{seed}/speed.csv",
        about="<results>/prune/{pair}/speed/seed{seed}/speed.json",
    log:
        "<logs>/speed/{pair}.seed{seed}.log",
    threads: all_cores
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=3000,
    params:
        code=code("scripts/speed.py"),
        settings=plan.section("speed", "decode"),
        runs=plan.pruning.timed(),
        folders=lambda w: plan.pruning.timed_folders(w),
        bpe=subpath(input[0], parent=True),
    message:
        "Timing pruned models on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/speed.py --runs {params.runs:q} --models {params.folders:q}"
        " --bpe {params.bpe:q} --out {output.times:q} {params.settings:q} > {log:q} 2>&1"
