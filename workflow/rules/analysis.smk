# Needs: the text of all pairs and the files of all runs; see headcount/analysis/inputs.yaml.
# Makes: <results>/tables, <results>/figures, <results>/metrics.json and <results>/atlas.html, by a
#        rule for each chapter of headcount/analysis/outputs.py; <results>/report.html.

outputs = Outputs(plan, workflow.rules)

for chapter in outputs.chapters:

    rule:
        name:
            chapter.name
        input:
            **outputs.inputs(chapter),
        output:
            outputs.files(chapter),
        params:
            script="scripts/analysis.py",
            code=code("scripts/analysis.py", *chapter.modules),
            chapter=chapter.name,
            files=given(*chapter.kinds),
            settings=outputs.flags(chapter),
            folder=folder_above(chapter.outputs[0].files[0]),
        message:
            f"Making the tables and figures of {chapter.title}"
        shell:
            "python scripts/analysis.py {params.chapter} {params.files:q} --out {params.folder:q}"
            " {params.settings:q} > {log:q} 2>&1"


made = [file for chapter in outputs.chapters for file in getattr(rules, chapter.name).output]


rule claims:
    """Decide every claim of the papers from the other tables and figures, and files of runs."""
    input:
        [file for file in made if file.endswith(".csv")],
        list(outputs.inputs(outputs.claims).values()),
    output:
        outputs.files(outputs.claims),
    params:
        code=code("scripts/claims.py", *outputs.claims.modules),
        folder=subpath(output[0], parent=True),
    shell:
        "python scripts/claims.py --results {input:q} --out {params.folder:q} > {log:q} 2>&1"


made += rules.claims.output


# Benchmarks are no input: they change at every run, and the report would be made again each time.
rule cost:
    """Tabulate the time and memory of jobs, after all other tables and figures."""
    input:
        made,
    output:
        outputs.files(outputs.cost),
    params:
        code=code("scripts/cost.py", *outputs.cost.modules),
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
        code=code("scripts/report.py", *outputs.modules),
        results=subpath(output[0], parent=True),
        outputs=outputs.pages(),
        title=lambda w: plan.settings.title or plan.name,  # as it is, braces and all
    shell:
        "python scripts/report.py --results {params.results:q} --title={params.title:q}"
        " --outputs {params.outputs:q} --out {output:q} > {log:q} 2>&1"
