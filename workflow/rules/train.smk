# Needs: <bpe> and <text>.
# Makes: <trained>: model, curve, head masks, translations, scores; translations and scores of the
#        pruned runs, in <pruned>, too.


rule train:
    """Train one model; its curve is in the log. Killed or stopped, it goes on from its last saved state."""
    input:
        multiext("<bpe>/", *TRAINING),
        pretrained=plan.imported.manifests,
    output:
        **model_in("<trained>"),
        last="<trained>/model/last.safetensors",
        run="<trained>/run.json",
        curves="<trained>/curves.csv",
        masks="<trained>/masks.csv",
        slopes="<trained>/slopes.csv",
        kept=[f"<trained>/updates/{n}.safetensors" for n in plan.settings.train.keep_updates],
    priority: plan.pruning.urgency
    threads: needs.threads("train")
    resources:
        **needs.training(),
    params:
        bpe=FOLDERS["bpe"],
        run=plan.run_flag,
        init_from=given("pretrained/"),  # or what a pruned run starts from
        given=[],  # which heads a pruned run has
        settings=plan.section("model", "train"),
        folder=subpath(output.curves, parent=True),
        # Not an output, so that Snakemake leaves it alone when it cleans up after a failed job.
        state=f"{plan.layout.results}/state/{{pair}}.{{run}}.seed{{seed}}",
    shell:
        "python {params.script} {params.run:q} {params.init_from:q} {params.given:q}"
        " --bpe {params.bpe:q} --seed {wildcards.seed} --out {params.folder:q}"
        " --state {params.state:q} {params.settings:q} > {log:q} 2>&1"


rule translate:
    """Translate one test set with one model."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<run>"),
        source="<text>/{test}.src",
    output:
        text="<run>/translations/{test}.txt",
        facts="<run>/translations/{test}.json",
    threads: needs.threads("decode")
    resources:
        **needs.translating(),
    params:
        **FOLDERS,
        decode=plan.section("decode"),
    shell:
        "python scripts/translate.py --model {params.model:q} --bpe {params.bpe:q}"
        " --source {input.source:q} --out {output.text:q}"
        " --facts {output.facts:q} {params.decode:q} > {log:q} 2>&1"


rule bleu:
    """Score a run's translations of all test sets."""
    input:
        translations=each("<run>/translations/{test}.txt", test=plan.tests),
        facts=each("<run>/translations/{test}.json", test=plan.tests),
        references=each("<text>/{test}.tgt", test=plan.tests),
    output:
        "<run>/bleu.json",
    params:
        tests=plan.tests,
        words=plan.words,
    shell:
        "python scripts/bleu.py --pair {wildcards.pair:q} --run {wildcards.run:q} {params.words:q}"
        " --seed {wildcards.seed} --tests {params.tests:q} --translations {input.translations:q}"
        " --references {input.references:q} --facts {input.facts:q} --out {output:q} > {log:q} 2>&1"
