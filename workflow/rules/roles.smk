# Needs: raw treebanks, <bpe>/<pair>, models of <results>/train and of <results>/prune.
# Makes: <bpe>/<pair>/trees, treebanks as the models read them;
#        <results>/heads/<pair>/<run>/seed<k>/{attention,positions,syntax,relevance}.csv and
#        maps.json; the first three of them beside every gates run that has a price, too, as
#        <results>/prune/<pair>/<run>/seed<k>/…; tables and figures of them.

ROLES_FILES = ["attention.csv", "positions.csv", "syntax.csv", "maps.json", "roles.json"]


rule trees:
    """Check a treebank and cut its words as a pair's text was cut."""
    input:
        multiext("<bpe>/{pair}/", *SEGMENTERS),
        raw=lambda w: plan.tree_manifest(w.pair, w.treebank),
    output:
        multiext("<bpe>/{pair}/trees/{treebank}", ".csv", ".json"),
        trees="<bpe>/{pair}/trees/{treebank}.jsonl",
    log:
        "<logs>/trees/{pair}.{treebank}.log",
    params:
        code=code("scripts/trees.py"),
        name=lambda w: w.treebank.partition(".")[2],
        bpe=subpath(input[0], parent=True),
        text=plan.section("text"),
    message:
        "Reading the trees of {wildcards.treebank} for {wildcards.pair}"
    shell:
        "python scripts/trees.py --raw {input.raw:q} --treebank {params.name:q}"
        " --bpe {params.bpe:q} --out {output.trees:q} {params.text:q} > {log:q} 2>&1"


rule roles:
    """Measure what every head of one model attends to."""
    input:
        multiext("<bpe>/{pair}/", *ROLES),
        trees=lambda w: plan.trees(w.pair, "jsonl"),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
    output:
        multiext("<results>/heads/{pair}/{run}/seed{seed}/", *ROLES_FILES),
    log:
        "<logs>/roles/{pair}.{run}.seed{seed}.log",
    threads: plan.settings.roles.threads
    resources:
        gpu=plan.gpus("roles"),
        mem_mb=2000,
    params:
        code=code("scripts/roles.py"),
        settings=plan.section("roles"),
        model=subpath(input.model, parent=True),
        bpe=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Measuring what the heads of {wildcards.run} do on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/roles.py --model {params.model:q} --bpe {params.bpe:q}"
        " --treebanks {input.trees:q} --out {params.folder:q} {params.settings:q} > {log:q} 2>&1"


rule pruned_roles:
    """Measure what the heads do that are left in the gates runs of one pair and seed."""
    input:
        multiext("<bpe>/{pair}/", *ROLES),
        trees=lambda w: plan.trees(w.pair, "jsonl"),
        models=expand(
            "<results>/prune/{{pair}}/{run}/seed{{seed}}/model/{name}",
            run=plan.pruning.priced(),
            name=["model.json", "weights.safetensors"],
        ),
    output:
        expand(
            "<results>/prune/{{pair}}/{run}/seed{{seed}}/{name}",
            run=plan.pruning.priced(),
            name=ROLES_FILES,
        ),
    log:
        "<logs>/pruned_roles/{pair}.seed{seed}.log",
    threads: plan.settings.roles.threads
    resources:
        gpu=plan.gpus("roles"),
        mem_mb=2000,
    params:
        code=code("scripts/pruned_roles.py"),
        settings=plan.section("roles"),
        bpe=subpath(input[0], parent=True),
        folders=[
            f"results/{plan.name}/prune/{{pair}}/{run}/seed{{seed}}"
            for run in plan.pruning.priced()
        ],
    message:
        "Measuring what the heads left in pruned models do on {wildcards.pair}, seed {wildcards.seed}"
    shell:
        "python scripts/pruned_roles.py --runs {params.folders:q} --bpe {params.bpe:q}"
        " --treebanks {input.trees:q} {params.settings:q} > {log:q} 2>&1"


rule relevance:
    """Measure how relevant every head of one model is to its predictions."""
    input:
        multiext("<bpe>/{pair}/", *RELEVANCE),
        model="<results>/train/{pair}/{run}/seed{seed}/model/model.json",
        weights="<results>/train/{pair}/{run}/seed{seed}/model/weights.safetensors",
    output:
        values="<results>/heads/{pair}/{run}/seed{seed}/relevance.csv",
        about="<results>/heads/{pair}/{run}/seed{seed}/relevance.json",
    log:
        "<logs>/relevance/{pair}.{run}.seed{seed}.log",
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


ROLES_TABLES = ["voita_table1", "voita_roles", "voita_agreement"]
ROLES_FIGURES = [f"voita_fig{number}" for number in (1, 2, 3, 4, 5, 8)]
ROLES_INPUT = {
    "attention": plan.of_runs("heads", "attention.csv"),
    "positions": plan.of_runs("heads", "positions.csv"),
    "syntax": plan.of_runs("heads", "syntax.csv"),
    "relevance": plan.of_runs("heads", "relevance.csv"),
    "importance": plan.of_runs("heads", "importance.csv"),
    "maps": plan.of_runs("heads", "maps.json"),
    "pruned_attention": plan.pruning.of_priced("attention.csv"),
    "pruned_positions": plan.pruning.of_priced("positions.csv"),
    "pruned_syntax": plan.pruning.of_priced("syntax.csv"),
    "kept": plan.pruning.of_pruned("heads.csv"),
    "trees": [file for pair in pairs for file in plan.trees(pair, "csv")],
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
        ablation=plan.ablation.of_runs("masking", "ablation.csv"),
        ablation_facts=plan.ablation.of_runs("masking", "ablation.json"),
        importance_facts=plan.of_runs("heads", "importance.json"),
    output:
        expand("<results>/tables/{name}.{end}", name=ROLES_TABLES, end=["md", "tex"]),
        shown=expand("<results>/tables/{name}.json", name=ROLES_TABLES),
        csv=[
            report(
                f"<results>/tables/{name}.csv", caption=f"../report/{name}.rst", category="Tables"
            )
            for name in ROLES_TABLES
        ],
    log:
        "<logs>/roles_tables.log",
    params:
        code=code("scripts/roles_tables.py"),
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
    log:
        "<logs>/roles_figures.log",
    params:
        code=code("scripts/roles_figures.py"),
        settings=plan.section("model", "roles", "lrp"),
        folder=subpath(output[0], parent=True),
    message:
        "Drawing what heads do"
    shell:
        f"python scripts/roles_figures.py{ROLES_FLAGS}"
        " --ablation --ablation-facts --importance-facts > {log:q} 2>&1"
