# Needs: <bpe>/<pair> and <text>/<pair>.
# Makes: <results>/train/<pair>/<run>/seed<k>: model, curve, head masks, translations, scores;
#        translations and scores of the pruned runs, below <results>/prune, too.


rule train:
    """Train one model. Killed or stopped, it goes on from its last saved state."""
    input:
        multiext("<bpe>/{pair}/", *TRAINING),
    output:
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        last="<results>/train/{pair}/{run}/seed{seed}/model/last.safetensors",
        run="<results>/train/{pair}/{run}/seed{seed}/run.json",
        curves="<results>/train/{pair}/{run}/seed{seed}/curves.csv",
        masks="<results>/train/{pair}/{run}/seed{seed}/masks.csv",
        kept=expand(
            "<results>/train/{{pair}}/{{run}}/seed{{seed}}/updates/{update}.safetensors",
            update=plan.settings.train.keep_updates,
        ),
    log:
        "<logs>/train/{pair}.{run}.seed{seed}.log",
    priority: lambda w: plan.pruning.urgency(w)
    threads: plan.settings.train.threads
    resources:
        gpu=plan.gpus("train"),
        mem_mb=3000,
    params:
        code=code("scripts/train.py"),
        settings=plan.section("model", "train"),
        bpe=subpath(input[0], parent=True),
        folder=subpath(output.curves, parent=True),
        # Not an output, so that Snakemake leaves it alone when it cleans up after a failed job.
        state=f"results/{plan.name}/state/{{pair}}.{{run}}.seed{{seed}}",
    message:
        "Training {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}; curve in {log}"
    shell:
        "python scripts/train.py --bpe {params.bpe:q} --run {wildcards.run:q}"
        " --seed {wildcards.seed} --out {params.folder:q} --state {params.state:q}"
        " {params.settings:q} > {log:q} 2>&1"


rule translate:
    """Translate one test set with one model."""
    input:
        multiext("<bpe>/{pair}/", *SEGMENTERS),
        model="<results>/{phase}/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/{phase}/{pair}/{run}/seed{seed}/model/weights.safetensors",
        source="<text>/{pair}/{test}.src",
    output:
        text="<results>/{phase}/{pair}/{run}/seed{seed}/translations/{test}.txt",
        facts="<results>/{phase}/{pair}/{run}/seed{seed}/translations/{test}.json",
    log:
        "<logs>/translate/{phase}/{pair}.{run}.seed{seed}.{test}.log",
    wildcard_constraints:
        run=alternatives([*runs, *pruned]),
    threads: plan.settings.decode.threads
    resources:
        gpu=plan.gpus("decode"),
        mem_mb=2000,
    params:
        code=code("scripts/translate.py"),
        decode=plan.section("decode"),
        model=subpath(input.model, parent=True),
        bpe=subpath(input[0], parent=True),
    message:
        "Translating {wildcards.test} with {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/translate.py --model {params.model:q} --bpe {params.bpe:q}"
        " --source {input.source:q} --out {output.text:q}"
        " --facts {output.facts:q} {params.decode:q} > {log:q} 2>&1"


rule bleu:
    """Score a run's translations of all test sets."""
    input:
        translations=lambda w: plan.translations(w, "txt"),
        facts=lambda w: plan.translations(w, "json"),
        references=lambda w: plan.text(w.pair, plan.tests(w.pair), "tgt"),
    output:
        "<results>/{phase}/{pair}/{run}/seed{seed}/bleu.json",
    log:
        "<logs>/bleu/{phase}/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        run=alternatives([*runs, *pruned]),
    params:
        code=code("scripts/bleu.py"),
        tests=lambda w: plan.tests(w.pair),
    message:
        "Scoring {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/bleu.py --pair {wildcards.pair:q} --run {wildcards.run:q}"
        " --seed {wildcards.seed} --tests {params.tests:q} --translations {input.translations:q}"
        " --references {input.references:q} --facts {input.facts:q} --out {output:q} > {log:q} 2>&1"
