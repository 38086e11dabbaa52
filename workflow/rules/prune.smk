# Needs: <bpe>, <text>, models in <trained>, rankings in <heads>.
# Makes: <pruned> of every pruned run: the smaller model, its curve and which heads it has;
#        <results>/prune/<pair>/speed/seed<k>/speed.csv, how fast they are; savings/seed<k>/savings.csv
#        beside it, what they save in our search and in CTranslate2, if `savings` asks;
#        <masking>/untuned_masking.csv, BLEU of the models they start from with as many heads masked.
#        Translations and scores are made by the rules of train.smk.

PRUNED = model_in("<pruned>") | {
    "out": "<pruned>/run.json",
    "curves": "<pruned>/curves.csv",
    "heads": "<pruned>/heads.csv",
}


use rule train as gates with:
    """Fine-tune a trained model with a gate on every head; remove the heads that close."""
    input:
        bpe=multiext("<bpe>/", *TRAINING),
        init_from=plan.pruning.start_model,
    output:
        **PRUNED,
        gates="<pruned>/gates.csv",
    params:
        script="scripts/prune.py",
        given=given("init_from/", "bpe/", "seed", "out/"),
        settings=plan.section("train", "gates"),


use rule gates as subset with:
    """Fine-tune a trained model while learning which heads stay, as many as its name says."""
    output:
        **PRUNED,
    params:
        settings=plan.section("train", "gates", "subset"),


use rule train as gates_from_none with:
    """Train with a gate on every head, from random weights; remove the heads that close."""
    input:
        bpe=multiext("<bpe>/", *TRAINING),
    output:
        **PRUNED,
        gates="<pruned>/gates.csv",
    params:
        script="scripts/prune.py",
        given=given("bpe/", "seed", "out/"),
        settings=plan.section("model", "train", "gates"),


use rule train as scratch with:
    """Train the heads that a gates run kept from a random start."""
    input:
        bpe=multiext("<bpe>/", *TRAINING),
        kept=plan.pruning.gates_heads,
    output:
        **PRUNED,
    params:
        script="scripts/prune.py",
        given=given("kept", "bpe/", "seed", "out/"),
        settings=plan.scratch_flags,


use rule gates as fine_tune with:
    """Remove as many heads as a gates run did, by importance or at random; fine-tune the rest."""
    input:
        bpe=multiext("<bpe>/", *TRAINING),
        init_from=plan.pruning.start_model,
        kept=plan.pruning.gates_heads,
        importance=plan.pruning.importance,
    output:
        **PRUNED,
    params:
        given=given("init_from/", "kept", "importance", "bpe/", "seed", "out/"),


use rule masking as untuned_masking with:
    """Translate with as many heads masked as each gates run closed, and nothing fine-tuned."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{test}.{side}", test=plan.masking_tests, side=SIDES),
        importance="<heads>/importance.csv",
        gates=plan.pruning.gates_heads_from,
    output:
        **result("<masking>/untuned_masking"),
        metrics=plan.metrics.masked("<masking>/untuned_masking"),
    params:
        given=given("model/", "bpe/", "text/", "seed", "importance", "gates", "out"),
        settings=plan.untuned_flags,


use rule share_speed as speed with:
    """Time the pruned models of a pair and seed beside the one they come from; nothing else runs."""
    input:
        bpe=multiext("<bpe>/", *TIMING),
        models=plan.pruning.timed_models,
    output:
        **result("<results>/prune/{pair}/speed/seed{seed}/speed"),
    params:
        given=given("models/", "bpe/", "out"),
        more=["--runs", *plan.pruning.timed()],


use rule share_speed as savings with:
    """Measure what the pruned models of a pair and seed save, in two programs; nothing else runs."""
    input:
        bpe=multiext("<bpe>/", *TRAINING),
        source=each("<text>/{test}.src", test=plan.first_test),
        reference=each("<text>/{test}.tgt", test=plan.first_test),
        models=plan.pruning.saving_models,
    output:
        **result("<results>/prune/{pair}/savings/seed{seed}/savings"),
        metrics=plan.metrics.masked("<results>/prune/{pair}/savings/seed{seed}/savings"),
    params:
        given=given("models/", "bpe/", "source", "reference", "out"),
        settings=lambda w: [
            *plan.savings_flags(),
            *plan.own_search(),
            *plan.metrics.masked_flags(),
        ],
        more=["--runs", *plan.pruning.saving()],
