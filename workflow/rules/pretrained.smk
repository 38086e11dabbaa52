# Needs: a model in config/models.yaml: of the hub, or a folder of one's own; <text>.
# Makes: data/raw/pretrained.<name>; <bpe> in its subwords, in place of rule bpe; <trained> of an
#        imported model that is not trained here, in place of rule train; nothing if no model is
#        imported.


rule fetch_pretrained:
    """Fetch a translation model of the Hugging Face library, or copy one's own, under checksums."""
    input:
        plan.own_files,
    output:
        "data/raw/pretrained.{pretrained}/{recipe}/manifest.json",
    wildcard_constraints:
        pretrained=alternatives(plan.imported.names),
    params:
        settings=plan.entry_flags,
    shell:
        "python {params.script} --name {wildcards.pretrained:q} {params.settings:q}"
        " --out {output:q} > {log:q} 2>&1"


rule segment:
    """Cut training and dev text into the subwords of the imported model."""
    input:
        train_src="<text>/train.src",
        train_tgt="<text>/train.tgt",
        dev_src="<text>/dev.src",
        dev_tgt="<text>/dev.tgt",
        pretrained=plan.imported.manifests,
    output:
        multiext("<bpe>/", *TRAINING),
    resources:
        **needs.text(),
    params:
        languages=plan.languages,
        codes=plan.imported.code_flags,
        spelling=plan.spelling(),
        pretrained=given("pretrained/"),
        folder=subpath(output[0], parent=True),
    shell:
        "python {params.script} {params.pretrained:q} {params.languages:q} {params.codes:q}"
        " {params.spelling:q} --train-src {input.train_src:q} --train-tgt {input.train_tgt:q}"
        " --dev-src {input.dev_src:q} --dev-tgt {input.dev_tgt:q}"
        " --out-folder {params.folder:q} > {log:q} 2>&1"


rule imported_run:
    """Take an imported model as it is for a training run; check it, and measure its dev loss."""
    input:
        multiext("<bpe>/", *TRAINING),
        pretrained=plan.imported.manifests,
    output:
        **model_in("<trained>"),
        run="<trained>/run.json",
        curves="<trained>/curves.csv",
        masks="<trained>/masks.csv",
        slopes="<trained>/slopes.csv",
        about="<trained>/import.json",
    threads: needs.threads("train")
    resources:
        **needs.job("train"),
    params:
        bpe=FOLDERS["bpe"],
        pretrained=given("pretrained/"),
        settings=plan.section("model"),
        measuring=as_flags(plan.settings.train, "batch_tokens", "device", "threads"),
        folder=subpath(output.curves, parent=True),
    shell:
        "python {params.script} {params.pretrained:q} --bpe {params.bpe:q}"
        " --out {params.folder:q} {params.settings:q} {params.measuring:q} > {log:q} 2>&1"
