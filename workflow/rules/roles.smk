# Needs: raw treebanks, <bpe>/<pair>, models of <results>/train and of <results>/prune.
# Makes: <bpe>/<pair>/trees, treebanks as the models read them;
#        <results>/heads/<pair>/<run>/seed<k>/{attention,positions,syntax,relevance}.csv and
#        maps.json; the first three of them beside every gates run that has a price, too, as
#        <results>/prune/<pair>/<run>/seed<k>/….

ROLES = ["attention.csv", "positions.csv", "syntax.csv", "maps.json", "roles.json"]
ROLES_TEXT = ["src.vocab", "tgt.vocab", "dev.src", "dev.tgt"]


rule trees:
    """Check a treebank and cut its words as a pair's text was cut."""
    input:
        raw=lambda w: (
            plan.manifest(w.pair)
            if plan.treebanks.is_generated(w.treebank)
            else plan.treebanks.fetched(w.treebank)
        ),
        bpe=multiext(
            "<bpe>/{pair}/",
            "segmentation.json",
            "src.codes",
            "tgt.codes",
            "src.vocab",
            "tgt.vocab",
        ),
    output:
        multiext("<bpe>/{pair}/trees/{treebank}", ".jsonl", ".csv", ".json"),
    log:
        "<logs>/trees/{pair}.{treebank}.log",
    conda:
        "../../environment.yml"
    params:
        code=code("scripts/trees.py"),
        name=lambda w: w.treebank.partition(".")[2],
        bpe=subpath(input.bpe[0], parent=True),
        text=plan.section("text"),
    message:
        "Reading the trees of {wildcards.treebank} for {wildcards.pair}"
    shell:
        "python scripts/trees.py --raw {input.raw:q} --treebank {params.name:q}"
        " --bpe {params.bpe:q} --out {output[0]:q} {params.text:q} > {log:q} 2>&1"


rule roles:
    """Measure what every head of one model attends to."""
    input:
        multiext("<bpe>/{pair}/", *ROLES_TEXT, "train.src"),
        trees=lambda w: plan.trees(w.pair, "jsonl"),
        model=lambda w: plan.measured_model(w),
    output:
        multiext("<results>/{part}/{pair}/{run}/seed{seed}/", *ROLES),
    log:
        "<logs>/roles/{part}/{pair}.{run}.seed{seed}.log",
    wildcard_constraints:
        part="heads|prune",
        run=alternatives([*runs, *plan.pruning.priced()]),
    conda:
        "../../environment.yml"
    threads: plan.settings.roles.threads
    resources:
        gpu=plan.gpus("roles"),
        mem_mb=2000,
    params:
        code=code("scripts/roles.py"),
        settings=plan.section("roles"),
        model=subpath(input.model[0], parent=True),
        bpe=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Measuring what the heads of {wildcards.run} do on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/roles.py --model {params.model:q} --bpe {params.bpe:q}"
        " --treebanks {input.trees:q} --out {params.folder:q} {params.settings:q} > {log:q} 2>&1"


rule relevance:
    """Measure how relevant every head of one model is to its predictions."""
    input:
        multiext("<bpe>/{pair}/", *ROLES_TEXT),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
    output:
        values="<results>/heads/{pair}/{run}/seed{seed}/relevance.csv",
        about="<results>/heads/{pair}/{run}/seed{seed}/relevance.json",
    log:
        "<logs>/relevance/{pair}.{run}.seed{seed}.log",
    conda:
        "../../environment.yml"
    threads: plan.settings.lrp.threads
    resources:
        gpu=plan.gpus("lrp"),
        mem_mb=3000,
    params:
        code=code("scripts/relevance.py"),
        settings=plan.section("lrp"),
        model=subpath(input.model, parent=True),
        bpe=subpath(input[0], parent=True),
    message:
        "Measuring relevance in {wildcards.run} on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/relevance.py --model {params.model:q} --bpe {params.bpe:q}"
        " --out {output.values:q} {params.settings:q} > {log:q} 2>&1"
