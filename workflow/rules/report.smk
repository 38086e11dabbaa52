# Needs: the text, subwords and runs of all pairs, and the tables and figures of headmask.smk,
#        roles.smk and, if runs are pruned, of voita.smk, and, if runs are ablated, of michel.smk.
# Makes: <results>/tables, <results>/figures, <results>/metrics.json, <results>/report.html.


rule corpus_table:
    """Tabulate the corpora: sizes, subwords, duplicates, overlap."""
    input:
        text=[
            file
            for pair in pairs
            for file in plan.text(pair, ["train", *plan.held_out(pair)], "src", "tgt", "json")
        ],
        bpe=[f"data/bpe/{plan.name}/{pair}/{name}" for pair in pairs for name in TRAINING],
    output:
        multiext("<results>/tables/corpus", md=".md", tex=".tex", shown=".json"),
        csv=report("<results>/tables/corpus.csv", caption="../report/corpus.rst", category="Tables"),
    log:
        "<logs>/corpus_table.log",
    params:
        code=code("scripts/corpus_table.py"),
        folders=[
            word
            for pair in pairs
            for word in (
                ("--pair", pair)
                + ("--splits", ",".join(["train", *plan.held_out(pair)]))
                + ("--text", f"data/text/{plan.name}/{pair}")
                + ("--bpe", f"data/bpe/{plan.name}/{pair}")
            )
        ],
    message:
        "Tabulating the corpora"
    shell:
        "python scripts/corpus_table.py {params.folders:q} --out {output.csv:q} > {log:q} 2>&1"


rule bleu_table:
    """Gather the scores of all runs."""
    input:
        plan.of_runs("train", "bleu.json"),
        plan.pruning.of_pruned("bleu.json"),
    output:
        multiext("<results>/tables/bleu", md=".md", tex=".tex", shown=".json"),
        csv=report("<results>/tables/bleu.csv", caption="../report/bleu.rst", category="Tables"),
        metrics="<results>/metrics.json",
    log:
        "<logs>/bleu_table.log",
    params:
        code=code("scripts/bleu_table.py"),
    message:
        "Tabulating BLEU and chrF"
    shell:
        "python scripts/bleu_table.py --scores {input:q} --out {output.csv:q}"
        " --metrics {output.metrics:q} > {log:q} 2>&1"


rule curves_figure:
    """Draw loss against updates and against time, for every run."""
    input:
        expand(rules.train.output.curves, pair=pairs, run=runs, seed=seeds),
    output:
        multiext("<results>/figures/curves", csv=".csv", pdf=".pdf", png=".png", about=".json"),
        svg=report(
            "<results>/figures/curves.svg", caption="../report/curves.rst", category="Figures"
        ),
    log:
        "<logs>/curves_figure.log",
    params:
        code=code("scripts/curves_figure.py"),
    message:
        "Drawing training curves"
    shell:
        "python scripts/curves_figure.py --curves {input:q} --out {output.csv:q} > {log:q} 2>&1"


rule report:
    """Put tables and figures on one page that opens offline."""
    input:
        tables=[
            rules.bleu_table.output.shown,
            rules.corpus_table.output.shown,
            *rules.headmask_tables.output.shown,
            *rules.roles_tables.output.shown,
            *(rules.voita_tables.output.shown if pruned else []),
            *(rules.michel_tables.output.shown if ablated else []),
        ],
        figures=[
            rules.curves_figure.output.svg,
            *rules.headmask_figures.output.svg,
            *rules.roles_figures.output.svg,
            *(rules.voita_figures.output.svg if pruned else []),
            *(rules.michel_figures.output.svg if ablated else []),
        ],
        captions=[
            rules.curves_figure.output.about,
            *rules.headmask_figures.output.about,
            *rules.roles_figures.output.about,
            *(rules.voita_figures.output.about if pruned else []),
            *(rules.michel_figures.output.about if ablated else []),
        ],
    output:
        report("<results>/report.html", caption="../report/page.rst", category="Page"),
    log:
        "<logs>/report.log",
    params:
        code=code("scripts/report.py"),
        title=lambda w: plan.settings.title or plan.name,  # as it is, braces and all
    message:
        "Writing the report"
    shell:
        "python scripts/report.py --title={params.title:q} --tables {input.tables:q}"
        " --figures {input.figures:q} --out {output:q} > {log:q} 2>&1"
