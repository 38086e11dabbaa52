"""The page `exhibits` of the reference: the list of all tables and figures."""

from headcount.findings.chapters import chapters
from headcount.findings.inputs import with_groups

_INTRODUCTION = """\
# Tables and figures

A chapter is one rule: `snakemake --cores all headmask` makes the tables and figures of HeadMask.
Tables are `results/<experiment>/tables/<name>.{csv,md,tex,json}`, figures are
`results/<experiment>/figures/<name>.{pdf,svg,png,csv,json}`; the `.json` says how each was made.
A page is `results/<experiment>/<name>.html`.
An experiment without any file of a kind that an exhibit needs does not have that exhibit. Kinds
in brackets may have no file; [Files and columns](files.md) says what files each kind has.
"""


def exhibits_page() -> str:
    """The whole page: every table and figure, and what it is made from."""
    parts = [_INTRODUCTION]
    for chapter in chapters():
        rows = [("name", "form", "what it is", "made from"), ["---"] * 4]
        for each in chapter.exhibits:
            kinds = [*with_groups(each.needs), *(f"({kind})" for kind in with_groups(each.uses))]
            rows.append((f"`{each.name}`", each.form, each.title, ", ".join(kinds)))
        lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        parts.append(f"## {chapter.title}: `{chapter.name}`\n\n{lines}")
    return "\n".join(parts)
