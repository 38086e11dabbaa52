# Needs: a model in config/models.yaml: of the hub, or a folder of one's own; <text>.
# Makes: data/raw/pretrained.<name>; <bpe> in its subwords, in place of rule bpe; <trained> of an
#        imported model that is not trained here, in place of rule train; nothing if no model is
#        imported.


use rule download as fetch_pretrained with:
    """Fetch a translation model of the Hugging Face library, or copy one's own, under checksums."""
    wildcard_constraints:
        corpus=alternatives(plan.imported.sources),
    params:
        script="scripts/download.py",


use rule bpe as segment with:
    """Cut training and dev text into the subwords of the imported model."""
    input:
        **CLEANED,
        pretrained=plan.imported.manifests,
    params:
        given=given(*CLEANED, "pretrained/", "out_folder/"),
        settings=plan.spelling(),
        more=plan.code_flags,


rule imported_run:
    """Take an imported model as it is for a training run; check it, and measure its dev loss."""
    input:
        bpe=multiext("<bpe>/", *TRAINING),
        pretrained=plan.imported.manifests,
    output:
        **model_in("<trained>"),
        out="<trained>/run.json",
        curves="<trained>/curves.csv",
        masks="<trained>/masks.csv",
        slopes="<trained>/slopes.csv",
        about="<trained>/import.json",
    threads: needs.threads("train")
    resources:
        **needs.job("train"),
    params:
        given=given("pretrained/", "bpe/", "out/"),
        settings=plan.section("model"),
        more=as_flags(plan.settings.train, "batch_tokens", "device", "threads"),
    shell:
        RUN
