# Needs: the tables and figures of findings.smk.
# Makes: <results>/report.html.


rule report:
    """Put tables and figures on one page that opens offline."""
    input:
        tables=[file for each in made for file in each.shown],
        figures=[file for each in made for file in each.svg],
        captions=[file for each in made for file in each.about],
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
