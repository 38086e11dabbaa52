# Needs: the text of all pairs and the files of all runs; see headcount/analysis/inputs.yaml.
# Makes: <results>/tables, <results>/figures, <results>/metrics.json and <results>/atlas.html, by a
#        rule for each chapter of headcount/analysis/outputs.py; <results>/report.html.

outputs = Outputs(plan, workflow.rules)
METRICS = ["--metrics", *plan.metrics.names] if plan.metrics.names else []
CHAPTER = RUN.replace("script}", "script} {params.chapter}")

for chapter in (*outputs.chapters, *outputs.requested):

    rule:
        name:
            chapter.rule
        input:
            **outputs.inputs(chapter),
        output:
            outputs.files(chapter),
        params:
            script="scripts/analysis.py",
            code=code("scripts/analysis.py", *chapter.modules),
            chapter=chapter.name,
            given=given(*chapter.kinds),
            settings=[*outputs.flags(chapter), "--out", plan.layout.results],
        message:
            f"Making the tables and figures of {chapter.title}"
        shell:
            CHAPTER


made = [file for chapter in outputs.chapters for file in getattr(rules, chapter.rule).output]


rule claims:
    """Decide every claim of the papers from the other tables and figures, and files of runs."""
    input:
        outputs=[
            *(file for file in made if file.endswith(".csv")),
            *outputs.inputs(outputs.claims).values(),
        ],
    output:
        outputs.files(outputs.claims),
    params:
        script="scripts/analysis.py",
        code=code("scripts/analysis.py", *outputs.claims.modules),
        chapter="claims",
        given=given("outputs"),
        settings=["--out", plan.layout.results],
    shell:
        CHAPTER


made += rules.claims.output


# Benchmarks are no input: they change at every run, and the report would be made again each time.
use rule claims as cost with:
    """Tabulate the time and memory of jobs, after all other tables and figures."""
    input:
        made,
    output:
        outputs.files(outputs.cost),
    params:
        code=code("scripts/analysis.py", *outputs.cost.modules),
        chapter="cost",
        given=[],
        more=["--benchmarks", f"{plan.layout.results}/benchmarks"],


rule report:
    """Put all tables and figures, by question, on one page that opens offline."""
    input:
        made,
        rules.cost.output,
    output:
        out=report("<results>/report.html", category="Page"),
    params:
        code=code("scripts/report.py", *outputs.modules),
        given=given("out"),
        settings=["--results", plan.layout.results, "--outputs", *outputs.pages(), *METRICS],
        more=lambda w: [f"--title={plan.settings.title or plan.name}"],  # as it is, braces and all
    shell:
        RUN
