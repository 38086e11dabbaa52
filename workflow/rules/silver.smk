# Needs: <text>, <bpe>, models in <trained>; the extra `align`.
# Makes: <text>/links/<test>.silver.links, which rule links reads where alignment.links is silver.
#        Elsewhere only on request, and with it <bpe>/links/<test>.silver.jsonl and
#        <results>/silver, alignment against these links, for the chapter silver_agreement.


rule silver_links:
    """Predict links between the words of a test set with eflomal, an outside command."""
    input:
        text=each("<text>/{split}.{side}", split=["train", "{aligned}"], side=SIDES),
    output:
        out="<text>/links/{aligned}.silver.links",
        about="<text>/links/{aligned}.silver.json",
    threads: needs.threads("alignment")
    resources:
        **needs.text(),
    params:
        given=given("text/", "out"),
        settings=as_flags(plan.settings.alignment, *SilverSettings.model_fields),
        more=lambda w: ["--test", w.aligned],
    shell:
        RUN


use rule links as silver_pieces with:
    """Cut the words of a test set with gold links, and give them their silver links."""
    input:
        bpe=multiext("<bpe>/", *SEGMENTERS),
        text=each("<text>/{{aligned}}.{side}", side=SIDES),
        raw="<text>/links/{aligned}.silver.links",
    output:
        out="<bpe>/links/{aligned}.silver.jsonl",
    params:
        script="scripts/links.py",


SILVER = [plan.layout.run("silver", run=run) for run in plan.runs]


use rule alignment as silver_alignment with:
    """Measure alignment of the models of one pair and seed against silver links."""
    input:
        bpe=multiext("<bpe>/", *SEGMENTERS),
        links=lambda w: plan.links(w, "silver"),
        models=[f"{folder}/model/{name}" for folder in TRAINED for name in MODEL_FILES],
    output:
        outs=[f"{folder}/{name}" for folder in SILVER for name in ALIGNMENT_FILES],
    params:
        script="scripts/alignment.py",
        settings=as_flags(plan.settings.alignment.model_copy(update={"links": "silver"})),
