# Makes: nothing; it lists every file that an experiment consists of, for rule all to ask for.
#
# Snakemake makes what is asked for, and does not miss a file in the middle while what follows it is
# there. `workflow/bridge.py plan` refuses a rule whose files are not listed here.

everything = [
    *(
        file
        for rule, values in jobs(plan, workflow.rules)
        for file in expand(getattr(rules, rule).output, **values)
    ),
    *made,
    *rules.cost.output,
    *rules.report.output,
]
