# Needs: the pruned runs, their translations and scores, untuned_masking and speed of prune.smk.
# Makes: <results>/tables/voita_*, <results>/figures/voita_*; nothing if no run is pruned.

VOITA_TABLES = ["voita_table2", "voita_pruning", "voita_falls", "voita_comparison"]
VOITA_TABLES += ["voita_speedup"]
VOITA_FIGURES = [f"voita_fig{number}" for number in (6, 7, 9, 10)]
VOITA_FIGURES += ["voita_gates", "voita_methods", "voita_speed"]


rule voita_tables:
    """Tabulate head pruning: Voita's Table 2, every run, where BLEU falls, other ways, speed."""
    input:
        heads=files("prune", pruned, "heads.csv"),
        gates=files("prune", plan.pruning.named("gates"), "gates.csv"),
        scores=[
            *files("train", plan.pruning.starts(), "bleu.json"),
            *files("prune", pruned, "bleu.json"),
        ],
        curves=[
            *files("train", plan.pruning.starts(), "curves.csv"),
            *files("prune", pruned, "curves.csv"),
        ],
        translations=plan.translations("prune", pruned),
        references=plan.texts("tgt"),
        untuned=files("masking", plan.pruning.starts(), "untuned_masking.csv"),
        facts=files("masking", plan.pruning.starts(), "untuned_masking.json"),
        speed=files("prune", ["speed"] if pruned else [], "speed.csv"),
    output:
        expand("<results>/tables/{name}.{end}", name=VOITA_TABLES, end=["md", "tex"]),
        shown=expand("<results>/tables/{name}.json", name=VOITA_TABLES),
        csv=[
            report(
                f"<results>/tables/{name}.csv", caption=f"../report/{name}.rst", category="Tables"
            )
            for name in VOITA_TABLES
        ],
    params:
        settings=plan.section("model", "gates"),
        folder=subpath(output[0], parent=True),
    message:
        "Tabulating head pruning"
    shell:
        "python scripts/voita_tables.py --kept {input.heads:q} --gates {input.gates:q}"
        " --scores {input.scores:q} --curves {input.curves:q}"
        " --translations {input.translations:q} --references {input.references:q}"
        " --untuned {input.untuned:q} --facts {input.facts:q} --speed {input.speed:q}"
        " --out {params.folder:q} {params.settings:q} > {log:q} 2>&1"


rule voita_figures:
    """Draw head pruning: Voita's Figures 6, 7, 9 and 10, gates over training, speed."""
    input:
        heads=files("prune", pruned, "heads.csv"),
        gates=files("prune", plan.pruning.named("gates"), "gates.csv"),
        scores=[
            *files("train", plan.pruning.starts(), "bleu.json"),
            *files("prune", pruned, "bleu.json"),
        ],
        curves=[
            *files("train", plan.pruning.starts(), "curves.csv"),
            *files("prune", pruned, "curves.csv"),
        ],
        translations=plan.translations("prune", pruned),
        references=plan.texts("tgt"),
        untuned=files("masking", plan.pruning.starts(), "untuned_masking.csv"),
        facts=files("masking", plan.pruning.starts(), "untuned_masking.json"),
        speed=files("prune", ["speed"] if pruned else [], "speed.csv"),
    output:
        expand("<results>/figures/{name}.{end}", name=VOITA_FIGURES, end=["csv", "pdf", "png"]),
        about=expand("<results>/figures/{name}.json", name=VOITA_FIGURES),
        svg=[
            report(
                f"<results>/figures/{name}.svg",
                caption=f"../report/{name}.rst",
                category="Figures",
            )
            for name in VOITA_FIGURES
        ],
    params:
        settings=plan.section("model", "gates"),
        folder=subpath(output[0], parent=True),
    message:
        "Drawing head pruning"
    shell:
        "python scripts/voita_figures.py --kept {input.heads:q} --gates {input.gates:q}"
        " --scores {input.scores:q} --curves {input.curves:q}"
        " --translations {input.translations:q} --references {input.references:q}"
        " --untuned {input.untuned:q} --facts {input.facts:q} --speed {input.speed:q}"
        " --out {params.folder:q} {params.settings:q} > {log:q} 2>&1"
