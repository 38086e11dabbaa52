# Needs: a corpus with labelled pairs in data/raw; models of the hub, or folders of one's own.
# Makes: data/raw/model.<name>; <text> of the corpus; <trained> of models that are fine-tuned;
#        <masking>/classifier_*.csv of every model; nothing if `classifiers` has no models.


rule fetch_classifier:
    """Fetch a model of the Hugging Face library, or copy one's own, with a record of its files."""
    input:
        plan.own_files,
    output:
        "data/raw/model.{model}/{recipe}/manifest.json",
    wildcard_constraints:
        model=alternatives(plan.classifiers.models),
    params:
        settings=plan.classifiers.origin_flags,
    shell:
        "python {params.script} {params.settings:q} --out {output:q} > {log:q} 2>&1"


rule entailment:
    """Part labelled pairs: to fine-tune classifiers, to rank their heads, to score them."""
    input:
        raw=lambda w: plan.raw.of(w.pair).manifest,
    output:
        multiext("<text>/", *(f"{part}.jsonl" for part in ENTAILMENT_PARTS)),
        counts="<text>/parts.json",
    resources:
        **needs.text(),
    params:
        settings=as_flags(plan.settings.classifiers, "dev_pairs", "train_pairs"),
        folder=subpath(output[0], parent=True),
    shell:
        "python {params.script} --raw {input.raw:q} --out {params.folder:q}"
        " {params.settings:q} > {log:q} 2>&1"


rule fine_tune_classifier:
    """Fine-tune one classifier. Killed or stopped, it goes on after its last whole epoch."""
    input:
        train="<text>/train.jsonl",
        start=lambda w: plan.classifiers.source(w.run).manifest,
    output:
        multiext("<trained>/model/", *CLASSIFIER_FILES),
        facts="<trained>/fine_tuning.json",
    threads: needs.threads("fine_tuning")
    resources:
        **needs.job("fine_tuning", mem_mb=6000),
    params:
        model=subpath(input.start, parent=True),
        settings=plan.section("fine_tuning"),
        folder=subpath(output.facts, parent=True),
        # Not an output, so that Snakemake leaves it alone when it cleans up after a failed job.
        state=f"{plan.layout.results}/state/{{pair}}.{{run}}.seed{{seed}}",
    shell:
        "python {params.script} --model {params.model:q} --train {input.train:q}"
        " --seed {wildcards.seed} --out {params.folder:q} --state {params.state:q}"
        " {params.settings:q} > {log:q} 2>&1"


rule classifier_ablation:
    """Score a classifier without each head, with one alone in each layer, and pruned in steps."""
    input:
        model=plan.classifiers.files,
        dev="<text>/dev.jsonl",
        matched="<text>/matched.jsonl",
        mismatched="<text>/mismatched.jsonl",
    output:
        multiext("<masking>/classifier_ablation", ".csv", ".json"),
        multiext("<masking>/classifier_profile", ".csv", ".json"),
        multiext("<masking>/classifier_profile_areas", ".csv", ".json"),
    threads: needs.threads("classifier_ablation")
    resources:
        **needs.job("classifier_ablation", mem_mb=4000),
    params:
        model=given("model/"),
        labels=plan.classifiers.label_flags,
        given=given("dev", "matched", "mismatched", "seed"),
        settings=plan.section("classifier_ablation"),
        folder=subpath(output[0], parent=True),
    shell:
        "python {params.script} {params.model:q} {params.labels:q} {params.given:q}"
        " --out {params.folder:q} {params.settings:q} > {log:q} 2>&1"
