# Needs: raw treebanks, <bpe>, models in <trained> and in <pruned>.
# Makes: <bpe>/trees, treebanks as the models read them; <heads>/{attention,positions,syntax}.csv and
#        maps.json; the same in <pruned> of every gates run that has a price; tables and figures.

ROLES_FILES = ["attention.csv", "positions.csv", "syntax.csv", "maps.json", "roles.json"]
PRICED = [plan.layout.run("prune", run=run) for run in plan.pruning.priced()]


rule trees:
    """Check a treebank and cut its words as a pair's text was cut."""
    input:
        multiext("<bpe>/", *SEGMENTERS),
        raw=plan.raw_trees,
    output:
        multiext("<bpe>/trees/{treebank}", ".csv", ".json"),
        trees="<bpe>/trees/{treebank}.jsonl",
    params:
        name=plan.treebanks.own_name,
        bpe=FOLDERS["bpe"],
        text=plan.section("text"),
    message:
        "Reading the trees of {wildcards.treebank} for {wildcards.pair}"
    shell:
        "python scripts/trees.py --raw {input.raw:q} --treebank {params.name:q}"
        " --bpe {params.bpe:q} --out {output.trees:q} {params.text:q} > {log:q} 2>&1"


rule roles:
    """Measure what every head of one model attends to."""
    input:
        multiext("<bpe>/", *ROLES),
        **model_in("<trained>"),
        trees=plan.trees,
    output:
        multiext("<heads>/", *ROLES_FILES),
    threads: plan.settings.roles.threads
    resources:
        **plan.device("roles", mem_mb=2000),
    params:
        bpe=FOLDERS["bpe"],
        models=["--model", f"{plan.layout.run('train')}/model", "--out", plan.layout.run("heads")],
        settings=plan.section("roles"),
    message:
        "Measuring what the heads of {wildcards.run} do on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python {params.script} {params.models:q} --bpe {params.bpe:q}"
        " --treebanks {input.trees:q} {params.settings:q} > {log:q} 2>&1"


use rule roles as pruned_roles with:
    """Measure what the heads do that are left in the gates runs of one pair and seed."""
    input:
        multiext("<bpe>/", *ROLES),
        trees=plan.trees,
        models=[f"{folder}/model/{name}" for folder in PRICED for name in MODEL_FILES],
    output:
        [f"{folder}/{name}" for folder in PRICED for name in ROLES_FILES],
    params:
        models=["--runs", *PRICED],
    message:
        "Measuring what the heads left in pruned models do on {wildcards.pair}, seed {wildcards.seed}"


ROLES_TABLES = ["voita_table1", "voita_roles", "voita_agreement"]
ROLES_FIGURES = [f"voita_fig{number}" for number in (1, 2, 3, 4, 5, 8)]
ROLES_INPUT = {
    "attention": files("heads", runs, "attention.csv"),
    "positions": files("heads", runs, "positions.csv"),
    "syntax": files("heads", runs, "syntax.csv"),
    "relevance": files("heads", runs, "relevance.csv"),
    "importance": files("heads", runs, "importance.csv"),
    "maps": files("heads", runs, "maps.json"),
    "pruned_attention": files("prune", plan.pruning.priced(), "attention.csv"),
    "pruned_positions": files("prune", plan.pruning.priced(), "positions.csv"),
    "pruned_syntax": files("prune", plan.pruning.priced(), "syntax.csv"),
    "kept": files("prune", pruned, "heads.csv"),
    "trees": plan.tree_tables(),
}
ROLES_FLAGS = (
    " --attention {input.attention:q} --positions {input.positions:q} --syntax {input.syntax:q}"
    " --relevance {input.relevance:q} --importance {input.importance:q} --maps {input.maps:q}"
    " --pruned-attention {input.pruned_attention:q} --pruned-positions {input.pruned_positions:q}"
    " --pruned-syntax {input.pruned_syntax:q} --kept {input.kept:q} --trees {input.trees:q}"
    " --out {params.folder:q} {params.settings:q}"
)


rule roles_tables:
    """Tabulate what heads do: Voita's Table 1, every head, agreement of measures."""
    input:
        **ROLES_INPUT,
        ablation=plan.ablation.files("ablation.csv"),
        ablation_facts=plan.ablation.files("ablation.json"),
        importance_facts=files("heads", runs, "importance.json"),
    output:
        expand("<results>/tables/{name}.{end}", name=ROLES_TABLES, end=["md", "tex"]),
        shown=expand("<results>/tables/{name}.json", name=ROLES_TABLES),
        csv=[
            report(
                f"<results>/tables/{name}.csv", caption=f"../report/{name}.rst", category="Tables"
            )
            for name in ROLES_TABLES
        ],
    params:
        settings=plan.section("model", "roles", "lrp"),
        folder=subpath(output[0], parent=True),
    message:
        "Tabulating what heads do"
    shell:
        f"python scripts/roles_tables.py{ROLES_FLAGS}"
        " --ablation {input.ablation:q} --ablation-facts {input.ablation_facts:q}"
        " --importance-facts {input.importance_facts:q} > {log:q} 2>&1"


# No figure shows ablation.csv: without it, none is made again when only that changes.
rule roles_figures:
    """Draw what heads do: Voita's Figures 1 to 5 and 8."""
    input:
        **ROLES_INPUT,
    output:
        expand("<results>/figures/{name}.{end}", name=ROLES_FIGURES, end=["csv", "pdf", "png"]),
        about=expand("<results>/figures/{name}.json", name=ROLES_FIGURES),
        svg=[
            report(
                f"<results>/figures/{name}.svg",
                caption=f"../report/{name}.rst",
                category="Figures",
            )
            for name in ROLES_FIGURES
        ],
    params:
        settings=plan.section("model", "roles", "lrp"),
        folder=subpath(output[0], parent=True),
    message:
        "Drawing what heads do"
    shell:
        f"python scripts/roles_figures.py{ROLES_FLAGS}"
        " --ablation --ablation-facts --importance-facts > {log:q} 2>&1"
