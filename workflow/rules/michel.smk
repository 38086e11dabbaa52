# Needs: <bpe>, <text>, models in <trained>, rankings in <heads>.
# Makes: <masking>/loss_change.csv, ablation.csv, measures.csv, pruning_profile.csv, training_profile.csv,
#        share_speed.csv and importance_speed.csv of the runs in `ablation.runs`, ffn.csv and layers.csv if
#        `ablation.units`; nothing if no run is named there, no measures unless `ablation.measures` asks, and no times without batch sizes in `speed`.

PROFILED = ("steps", "normalise")
MEASURED = ("fisher", "means") if plan.measured else ()
DRAWN = each(f"<bpe>/{plan.settings.importance.data}.{{side}}", side=SIDES)


use rule importance as loss_change with:
    """Measure how the loss changes without each head of one model, on the pairs of importance."""
    output:
        **result("<masking>/loss_change"),
    priority: 0
    params:
        script="scripts/importance.py",
        settings=["--measure", "loss_change", *plan.section("importance")],


use rule masking as ablation with:
    """Translate without each head of one model, and with one head alone in each of its layers."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{test}.{side}", test=plan.ablation_texts, side=SIDES),
    output:
        **result("<masking>/ablation"),
        metrics=plan.metrics.masked("<masking>/ablation"),
    params:
        given=given("model/", "bpe/", "text/", "out"),
        settings=plan.ablation_flags("sentences"),


use rule importance as more_measures with:
    """Measure the heads of one model in more ways, on the pairs of importance."""
    output:
        multiext("<masking>/measures_fisher", ".csv", ".json"),
        multiext("<masking>/measures_means", ".csv", ".json"),
        **result("<masking>/measures"),
    priority: 0
    params:
        settings=plan.section("importance", "measures"),


use rule ablation as pruning_profile with:
    """Translate with more and more heads of one model pruned: importance, effect, random."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{test}.{side}", test=plan.first_ablation_test, side=SIDES),
        drawn=DRAWN if plan.settings.ablation.signed else [],
        importance="<heads>/importance.csv",
        ablation="<masking>/ablation.csv",
        measured="<masking>/measures.csv" if plan.measured else [],
        beside_measured=each("<masking>/measures_{part}.csv", part=MEASURED),
    output:
        multiext("<masking>/pruning_profile_areas", ".csv", ".json"),
        **result("<masking>/pruning_profile"),
        metrics=[
            *plan.metrics.masked("<masking>/pruning_profile"),
            *plan.metrics.masked("<masking>/pruning_profile_areas"),
        ],
    params:
        given=given(
            *("model/", "bpe/", "text/", "seed", "importance", "ablation", "measured", "out")
        ),
        settings=plan.ablation_flags("sentences", "draws", "signed", *PROFILED),
        more=lambda w: [
            *plan.rerank_flags(),
            *plan.own_search(),
            *plan.metrics.masked_flags(),
        ],


use rule ablation as training_profile with:
    """Prune one model at points of its training: importance at each, and BLEU by step."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{test}.{side}", test=plan.first_ablation_test, side=SIDES),
        drawn=DRAWN,
        checkpoints=[f"<trained>/updates/{n}.safetensors" for n in plan.settings.ablation.updates],
    output:
        multiext("<masking>/training_profile_heads", ".csv", ".json"),
        **result("<masking>/training_profile"),
        metrics=plan.metrics.masked("<masking>/training_profile"),
    params:
        given=given("model/", "bpe/", "text/", "checkpoints", "out"),
        settings=plan.ablation_flags("sentences", "updates", *PROFILED),
        more=lambda w: [
            *plan.rerank_flags(),
            *plan.own_search(),
            *plan.metrics.masked_flags(),
        ],


use rule masking as mask_feed_forward with:
    """Translate without blocks of the feed-forward units of one model, by importance, at random."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{test}.{side}", test=plan.masking_tests, side=SIDES),
        own="<heads>/units.csv",
    output:
        **result("<masking>/ffn"),
        metrics=plan.metrics.masked("<masking>/ffn"),
    params:
        script="scripts/masking.py",
        given=given("model/", "bpe/", "text/", "seed", "own", "out"),
        more=lambda w: [
            *("--scope", "ffn"),
            *plan.own_search(),
            *plan.metrics.masked_flags(),
        ],


use rule mask_feed_forward as mask_layers with:
    """Translate without single layers of one model, and without more and more of them."""
    output:
        **result("<masking>/layers"),
        metrics=plan.metrics.masked("<masking>/layers"),
    params:
        more=lambda w: [
            *("--scope", "layers"),
            *plan.own_search(),
            *plan.metrics.masked_flags(),
        ],


rule share_speed:
    """Time one model without more and more of its heads, really removed; nothing else runs."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *TIMING),
        importance="<heads>/importance.csv",
    output:
        **result("<masking>/share_speed"),
    threads: session.all_cores
    resources:
        **needs.timing("decode"),
    params:
        given=given("model/", "bpe/", "importance", "out"),
        settings=[*plan.section("speed"), *plan.own_search()],
        more=plan.ablation_flags("normalise", "timed"),
    shell:
        RUN


use rule importance as importance_speed with:
    """Time importance beside training on the same sentences; nothing else runs."""
    output:
        **result("<masking>/importance_speed"),
    priority: 0
    threads: session.all_cores
    resources:
        **needs.timing("importance"),
    params:
        settings=plan.section("importance", "speed"),
