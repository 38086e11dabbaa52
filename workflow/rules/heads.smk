# Needs: models in <trained>, <text> and <bpe>.
# Makes: <heads>/relevance.csv; <heads>/importance.csv, which ranks the model's heads;
#        units.csv beside it, which ranks all its units, for pruned runs and `ablation.units`;
#        <masking>/headmask.csv, BLEU with heads masked; pair_transfer.csv beside it, by the rankings
#        of all pairs, if `many_pairs.shares` asks.


rule relevance:
    """Measure how relevant every head of one model is to its predictions."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *RELEVANCE),
    output:
        **result("<heads>/relevance"),
    threads: needs.threads("lrp")
    resources:
        **needs.job("lrp"),
    params:
        given=given("model/", "bpe/", "out"),
        settings=plan.section("lrp"),
    shell:
        RUN


use rule relevance as importance with:
    """Measure the importance of every head of one model."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *with_text(plan.settings.importance.data)),
    output:
        **result("<heads>/importance"),
    priority: plan.pruning.urgency
    threads: needs.threads("importance")
    resources:
        **needs.job("importance"),
    params:
        settings=plan.section("importance"),


use rule importance as unit_importance with:
    """Measure the importance of heads, feed-forward units and layers of one model."""
    output:
        **result("<heads>/units"),
    params:
        script="scripts/importance.py",
        settings=["--units", *plan.section("importance")],


rule masking:
    """Translate with one model under every mask: groups by importance, cumulative, random."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{test}.{side}", test=plan.masking_tests, side=SIDES),
        own="<heads>/importance.csv",
        baseline=plan.baseline_importance,
    output:
        **result("<masking>/headmask"),
        metrics=plan.metrics.masked("<masking>/headmask"),
    threads: needs.threads("decode")
    resources:
        **needs.job("decode"),
    params:
        given=given("model/", "bpe/", "text/", "seed", "own", "baseline", "out"),
        settings=plan.masking_flags,
        more=lambda w: [*plan.own_search(), *plan.metrics.masked_flags()],
    shell:
        RUN


use rule masking as pair_transfer with:
    """Translate one pair with heads masked by the rankings of all pairs that share the model."""
    input:
        **model_in("<trained>"),
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{test}.{side}", test=plan.first_test, side=SIDES),
        importance=plan.importance_of_pairs,
    output:
        **result("<masking>/pair_transfer"),
        metrics=plan.metrics.masked("<masking>/pair_transfer"),
    params:
        given=given("model/", "bpe/", "text/", "seed", "importance", "out"),
        settings=plan.transfer_flags,
