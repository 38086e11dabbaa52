# Needs: the text of all pairs, and what the jobs of all runs leave; see headcount/findings/inputs.py.
# Makes: <results>/tables, <results>/figures and <results>/metrics.json, by a rule for each chapter
#        of headcount/findings; <results>/report.html.

exhibits = Exhibits(plan, [rule.output[0] for rule in measuring(plan, workflow.rules)])

for chapter in exhibits.chapters:

    rule:
        name:
            chapter.name
        input:
            **exhibits.inputs(chapter),
        output:
            [exhibits.listed(chapter, each) for each in chapter.exhibits],
            [f"<results>/{file}" for each in chapter.exhibits for file in each.files[1:]],
        params:
            script="scripts/findings.py",
            code=code("scripts/findings.py", *chapter.modules),
            chapter=chapter.name,
            files=given(*chapter.kinds),
            settings=exhibits.flags(chapter),
            folder=folder_above(chapter.exhibits[0].files[0]),
        message:
            f"Making the tables and figures of {chapter.title}"
        shell:
            "python scripts/findings.py {params.chapter} {params.files:q} --out {params.folder:q}"
            " {params.settings:q} > {log:q} 2>&1"


made = [file for each in exhibits.chapters for file in getattr(rules, each.name).output]


rule claims:
    """Decide every claim of the papers from the other tables and figures, and files of runs."""
    input:
        [file for file in made if file.endswith(".csv")],
        list(exhibits.inputs(exhibits.claims).values()),
    output:
        [exhibits.listed(exhibits.claims, each) for each in exhibits.claims.exhibits],
        [f"<results>/{file}" for each in exhibits.claims.exhibits for file in each.files[1:]],
    params:
        code=code("scripts/claims.py", *exhibits.claims.modules),
        folder=subpath(output[0], parent=True),
    shell:
        "python scripts/claims.py --results {input:q} --out {params.folder:q} > {log:q} 2>&1"


made += rules.claims.output


# Benchmarks are no input of this one: they change at every run, and then all that shows them would.
rule cost:
    """Tabulate what jobs took: after all other exhibits, and again when one of them changes."""
    input:
        made,
    output:
        [exhibits.listed(exhibits.cost, each) for each in exhibits.cost.exhibits],
        [f"<results>/{file}" for each in exhibits.cost.exhibits for file in each.files[1:]],
    params:
        code=code("scripts/cost.py", *exhibits.cost.modules),
        benchmarks=f"{plan.layout.results}/benchmarks",
        folder=subpath(output[0], parent=True),
    shell:
        "python scripts/cost.py --benchmarks {params.benchmarks:q} --out {params.folder:q}"
        " > {log:q} 2>&1"


rule report:
    """Put all tables and figures, by question, on one page that opens offline."""
    input:
        made,
        rules.cost.output,
    output:
        report("<results>/report.html", category="Page"),
    params:
        code=code("scripts/report.py", *exhibits.modules),
        results=subpath(output[0], parent=True),
        exhibits=list(exhibits.pages()),
        titles=list(exhibits.pages().values()),  # docstrings, which `code` leaves out
        title=lambda w: plan.settings.title or plan.name,  # as it is, braces and all
    shell:
        "python scripts/report.py --results {params.results:q} --title={params.title:q}"
        " --exhibits {params.exhibits:q} --out {output:q} > {log:q} 2>&1"
