# Needs: the text, scores, translations, curves, masks, importance and masking of all runs.
# Makes: <results>/tables/headmask_*, <results>/figures/headmask_*.

HEADMASK_TABLES = [f"headmask_table{number}" for number in range(1, 7)]
HEADMASK_TABLES += ["headmask_stability", "headmask_collapse"]
HEADMASK_FIGURES = [f"headmask_fig{number}" for number in range(1, 6)]
HEADMASK_FIGURES += ["headmask_heads", "headmask_frequency"]


rule headmask_tables:
    """Tabulate HeadMask: the paper's Tables 1 to 6, stability of rankings, collapse."""
    input:
        counts=[
            file
            for pair in pairs
            for file in plan.text(pair, ["train", *plan.held_out(pair)], "json")
        ],
        references=[file for pair in pairs for file in plan.text(pair, plan.tests(pair), "tgt")],
        scores=plan.of_runs("train", "bleu.json"),
        translations=plan.all_translations(),
        curves=plan.of_runs("train", "curves.csv"),
        masks=plan.of_runs("train", "masks.csv"),
        importance=plan.of_runs("heads", "importance.csv"),
        masking=plan.of_runs("masking", "headmask.csv"),
        facts=plan.of_runs("masking", "headmask.json"),
    output:
        expand("<results>/tables/{name}.{end}", name=HEADMASK_TABLES, end=["md", "tex"]),
        shown=expand("<results>/tables/{name}.json", name=HEADMASK_TABLES),
        csv=[
            report(
                f"<results>/tables/{name}.csv", caption=f"../report/{name}.rst", category="Tables"
            )
            for name in HEADMASK_TABLES
        ],
    log:
        "<logs>/headmask_tables.log",
    params:
        code=code("scripts/headmask_tables.py"),
        settings=plan.section("model", "importance"),
        folder=subpath(output[0], parent=True),
    message:
        "Tabulating HeadMask"
    shell:
        "python scripts/headmask_tables.py --counts {input.counts:q}"
        " --references {input.references:q} --scores {input.scores:q}"
        " --translations {input.translations:q} --curves {input.curves:q} --masks {input.masks:q}"
        " --importance {input.importance:q} --masking {input.masking:q} --facts {input.facts:q}"
        " --out {params.folder:q} {params.settings:q} > {log:q} 2>&1"


rule headmask_figures:
    """Draw HeadMask: the paper's Figures 1 to 5, importance of every head, mask frequency."""
    input:
        masks=plan.of_runs("train", "masks.csv"),
        importance=plan.of_runs("heads", "importance.csv"),
        masking=plan.of_runs("masking", "headmask.csv"),
        facts=plan.of_runs("masking", "headmask.json"),
    output:
        expand("<results>/figures/{name}.{end}", name=HEADMASK_FIGURES, end=["csv", "pdf", "png"]),
        about=expand("<results>/figures/{name}.json", name=HEADMASK_FIGURES),
        svg=[
            report(
                f"<results>/figures/{name}.svg",
                caption=f"../report/{name}.rst",
                category="Figures",
            )
            for name in HEADMASK_FIGURES
        ],
    log:
        "<logs>/headmask_figures.log",
    params:
        code=code("scripts/headmask_figures.py"),
        settings=plan.section("model", "importance"),
        folder=subpath(output[0], parent=True),
    message:
        "Drawing HeadMask"
    shell:
        "python scripts/headmask_figures.py --masks {input.masks:q}"
        " --importance {input.importance:q} --masking {input.masking:q}"
        " --facts {input.facts:q} --out {params.folder:q} {params.settings:q} > {log:q} 2>&1"
