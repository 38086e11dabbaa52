# Needs: the text of all pairs, and what the jobs of all runs leave; see headcount/findings/inputs.py.
# Makes: <results>/tables and <results>/figures, a rule for each chapter of headcount/findings, and
#        <results>/metrics.json.

exhibits = Exhibits(plan)

for chapter in exhibits.chapters:

    rule:
        name:
            chapter.name
        input:
            **exhibits.inputs(chapter),
        output:
            expand(
                "<results>/tables/{name}.{end}",
                name=[each.name for each in chapter.tables],
                end=["md", "tex"],
            ),
            expand(
                "<results>/figures/{name}.{end}",
                name=[each.name for each in chapter.figures],
                end=["csv", "pdf", "png"],
            ),
            ["<results>/metrics.json"] if chapter.metrics else [],
            shown=[f"<results>/tables/{each.name}.json" for each in chapter.tables],
            csv=[
                exhibits.reported(chapter, each, f"<results>/tables/{each.name}.csv")
                for each in chapter.tables
            ],
            about=[f"<results>/figures/{each.name}.json" for each in chapter.figures],
            svg=[
                exhibits.reported(chapter, each, f"<results>/figures/{each.name}.svg")
                for each in chapter.figures
            ],
        params:
            script="scripts/findings.py",
            code=code("scripts/findings.py", *chapter.modules),
            chapter=chapter.name,
            files=given(*chapter.kinds),
            settings=exhibits.flags(chapter),
            folder=subpath(output[0], ancestor=2),
        message:
            f"Making the tables and figures of {chapter.title}"
        shell:
            "python scripts/findings.py {params.chapter} {params.files:q} --out {params.folder:q}"
            " {params.settings:q} > {log:q} 2>&1"


made = [getattr(rules, chapter.name).output for chapter in exhibits.chapters]
