# Needs: <bpe> and <text>.
# Makes: <trained>: model, curve, head masks, translations, scores; translations and scores of the
#        pruned runs, in <pruned>, too. <run>/metrics: scores of sentences by other metrics.


TRAINED = model_in("<trained>") | {
    "last": "<trained>/model/last.safetensors",
    "out": "<trained>/run.json",
    "curves": "<trained>/curves.csv",
    "masks": "<trained>/masks.csv",
    "slopes": "<trained>/slopes.csv",
    "kept": [f"<trained>/updates/{n}.safetensors" for n in plan.settings.train.keep_updates],
}


rule train:
    """Train one model; its curve is in the log. Killed or stopped, it goes on from its last saved state."""
    input:
        bpe=multiext("<bpe>/", *TRAINING),
        pretrained=plan.imported.manifests,
    output:
        **TRAINED,
    priority: plan.pruning.urgency
    threads: needs.threads("train")
    resources:
        **needs.training(),
    params:
        given=given("pretrained/", "bpe/", "seed", "out/"),
        settings=plan.section("model", "train"),
        more=plan.run_flags,
    shell:
        RUN


rule translate:
    """Translate one test set with one model."""
    input:
        **model_in("<run>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        source="<text>/{test}.src",
    output:
        out="<run>/translations/{test}.txt",
        facts="<run>/translations/{test}.json",
    threads: needs.threads("decode")
    resources:
        **needs.translating(),
    params:
        given=given("model/", "bpe/", "source", "out", "facts"),
        settings=plan.section("decode"),
    shell:
        RUN


rule bleu:
    """Score a run's translations of all test sets."""
    input:
        translations=each("<run>/translations/{test}.txt", test=plan.tests),
        facts=each("<run>/translations/{test}.json", test=plan.tests),
        references=each("<text>/{test}.tgt", test=plan.tests),
    output:
        out="<run>/bleu.json",
    params:
        given=given("pair", "run", "seed", "translations", "references", "facts", "out"),
        settings=plan.score_flags,
    shell:
        RUN


rule metric:
    """Score one test set's translations by another metric, by an outside command or from files."""
    input:
        source="<text>/{test}.src",
        reference="<text>/{test}.tgt",
        translations="<run>/translations/{test}.txt",
        facts="<run>/translations/{test}.json",
    output:
        **result("<run>/metrics/{metric}/{test}"),
    threads: needs.threads("decode")
    resources:
        **needs.translating(),
    params:
        given=given(
            *("pair", "run", "seed", "test", "metric", "source", "reference"),
            *("translations", "facts", "out"),
        ),
        settings=plan.metrics.flags,
    shell:
        RUN
