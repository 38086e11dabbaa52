# Needs: raw treebanks, <bpe>, models in <trained> and in <pruned>.
# Makes: <bpe>/trees, treebanks as the models read them; <heads>/{attention,positions,syntax}.csv and
#        sentences.jsonl; the same in <pruned> of every gates run with λ above 0.

ROLES_FILES = ["attention.csv", "positions.csv", "syntax.csv", "sentences.jsonl", "roles.json"]
PENALISED = [plan.layout.run("prune", run=run) for run in plan.pruning.penalised()]


rule trees:
    """Check a treebank and cut its words as a pair's text was cut."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        raw=lambda w: plan.raw.of_tree(w.treebank).manifest,
    output:
        multiext("<bpe>/trees/{treebank}", ".csv", ".json"),
        trees="<bpe>/trees/{treebank}.jsonl",
    params:
        name=lambda w: w.treebank.partition(".")[2],
        bpe=FOLDERS["bpe"],
    shell:
        "python scripts/trees.py --raw {input.raw:q} --treebank {params.name:q}"
        " --bpe {params.bpe:q} --out {output.trees:q} > {log:q} 2>&1"


rule roles:
    """Measure what every head of one model attends to."""
    input:
        multiext("<bpe>/", *ROLES),
        **model_in("<trained>"),
        trees=each("<bpe>/trees/{treebank}.jsonl", treebank=plan.raw.treebanks),
    output:
        multiext("<heads>/", *ROLES_FILES),
    threads: needs.threads("roles")
    resources:
        **needs.job("roles"),
    params:
        bpe=FOLDERS["bpe"],
        models=made_in("--out", "model/"),
        settings=plan.section("roles"),
    shell:
        "python {params.script} {params.models:q} --bpe {params.bpe:q}"
        " --treebanks {input.trees:q} {params.settings:q} > {log:q} 2>&1"


use rule roles as pruned_roles with:
    """Measure what the heads do that are left in the gates runs of one pair and seed."""
    input:
        multiext("<bpe>/", *ROLES),
        trees=each("<bpe>/trees/{treebank}.jsonl", treebank=plan.raw.treebanks),
        models=[f"{folder}/model/{name}" for folder in PENALISED for name in MODEL_FILES],
    output:
        [f"{folder}/{name}" for folder in PENALISED for name in ROLES_FILES],
    params:
        script="scripts/roles.py",
        models=made_in("--runs"),
