# Needs: a corpus with labelled pairs in data/raw; models of the hub, or folders of one's own.
# Makes: data/raw/model.<name>; <text> of the corpus; <trained> of models that are fine-tuned;
#        <masking>/classifier_*.csv of every model; nothing if `classifiers` has no models.


use rule download as fetch_classifier with:
    """Fetch a model of the Hugging Face library, or copy one's own, with a record of its files."""
    wildcard_constraints:
        corpus=alternatives(plan.classifiers.sources),
    params:
        script="scripts/download.py",


rule entailment:
    """Part labelled pairs: to fine-tune classifiers, to rank their heads, to score them."""
    input:
        raw=lambda w: plan.raw.of(w.pair).manifest,
    output:
        multiext("<text>/", *(f"{part}.jsonl" for part in ENTAILMENT_PARTS)),
        out="<text>/parts.json",
    resources:
        **needs.text(),
    params:
        given=given("raw", "out/"),
        settings=as_flags(plan.settings.classifiers, "dev_pairs", "train_pairs"),
    shell:
        RUN


rule fine_tune_classifier:
    """Fine-tune one classifier. Killed or stopped, it goes on after its last whole epoch."""
    input:
        train="<text>/train.jsonl",
        model=lambda w: plan.classifiers.sources[f"model.{w.run}"].manifest,
    output:
        multiext("<trained>/model/", *CLASSIFIER_FILES),
        out="<trained>/fine_tuning.json",
    threads: needs.threads("fine_tuning")
    resources:
        **needs.job("fine_tuning", mem_mb=6000),
    params:
        given=given("model/", "train", "seed", "out/"),
        settings=plan.section("fine_tuning"),
        more=plan.state_flags,
    shell:
        RUN


rule classifier_ablation:
    """Score a classifier without each head, with one alone in each layer, and pruned in steps."""
    input:
        model=plan.classifiers.files,
        dev="<text>/dev.jsonl",
        matched="<text>/matched.jsonl",
        mismatched="<text>/mismatched.jsonl",
    output:
        multiext("<masking>/classifier_profile", ".csv", ".json"),
        multiext("<masking>/classifier_profile_areas", ".csv", ".json"),
        **result("<masking>/classifier_ablation"),
    threads: needs.threads("classifier_ablation")
    resources:
        **needs.job("classifier_ablation", mem_mb=4000),
    params:
        given=given("model/", "dev", "matched", "mismatched", "seed", "out/"),
        settings=plan.section("classifier_ablation"),
        more=plan.classifiers.label_flags,
    shell:
        RUN
