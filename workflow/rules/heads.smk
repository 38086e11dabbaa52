# Needs: models in <trained>, <text> and <bpe>.
# Makes: <heads>/relevance.csv; <heads>/importance.csv, which ranks the model's heads;
#        <masking>/headmask.csv, BLEU with heads masked.


rule relevance:
    """Measure how relevant every head of one model is to its predictions."""
    input:
        multiext("<bpe>/", *RELEVANCE),
        **model_in("<trained>"),
    output:
        values="<heads>/relevance.csv",
        about="<heads>/relevance.json",
    threads: needs.threads("lrp")
    resources:
        **needs.job("lrp"),
    params:
        **FOLDERS,
        settings=plan.section("lrp"),
    shell:
        "python {params.script} --model {params.model:q} --bpe {params.bpe:q}"
        " --out {output.values:q} {params.settings:q} > {log:q} 2>&1"


use rule relevance as importance with:
    """Measure the importance of every head of one model."""
    input:
        multiext("<bpe>/", *with_text(plan.settings.importance.data)),
        **model_in("<trained>"),
    output:
        values="<heads>/importance.csv",
        about="<heads>/importance.json",
    priority: plan.pruning.urgency
    threads: needs.threads("importance")
    resources:
        **needs.job("importance"),
    params:
        settings=plan.section("importance"),


rule masking:
    """Translate with one model under every mask: groups by importance, cumulative, random."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        **model_in("<trained>"),
        text=each("<text>/{test}.{side}", test=plan.masking_tests, side=SIDES),
        own="<heads>/importance.csv",
        baseline=plan.baseline_importance,
    output:
        scores="<masking>/headmask.csv",
        about="<masking>/headmask.json",
    threads: needs.threads("decode")
    resources:
        **needs.job("decode"),
    params:
        **FOLDERS,
        given=given("text/", "seed", "own", "baseline"),
        settings=plan.masking_flags,
        more=plan.own_search(),
    shell:
        "python {params.script} --model {params.model:q} --bpe {params.bpe:q}"
        " {params.given:q} --out {output.scores:q}"
        " {params.settings:q} {params.more:q} > {log:q} 2>&1"
