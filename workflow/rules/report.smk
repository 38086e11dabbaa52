# Needs: the text, subwords and runs of all pairs, and the tables and figures of headmask.smk,
#        roles.smk and, if runs are pruned, of voita.smk, and, if runs are ablated, of michel.smk.
# Makes: <results>/tables, <results>/figures, <results>/metrics.json, <results>/report.html.


rule report:
    """Put tables and figures on one page that opens offline."""
    input:
        tables=[
            *(file for each in made for file in each.shown),
            *rules.roles_tables.output.shown,
            *(rules.voita_tables.output.shown if pruned else []),
        ],
        figures=[
            *(file for each in made for file in each.svg),
            *rules.roles_figures.output.svg,
            *(rules.voita_figures.output.svg if pruned else []),
        ],
        captions=[
            *(file for each in made for file in each.about),
            *rules.roles_figures.output.about,
            *(rules.voita_figures.output.about if pruned else []),
        ],
    output:
        report("<results>/report.html", caption="../report/page.rst", category="Page"),
    params:
        code=code("scripts/report.py", *map(declaration, CHAPTERS)),
        title=lambda w: plan.settings.title or plan.name,  # as it is, braces and all
    message:
        "Writing the report"
    shell:
        "python scripts/report.py --title={params.title:q}"
        " --exhibits {input.tables:q} {input.figures:q} --out {output:q} > {log:q} 2>&1"
