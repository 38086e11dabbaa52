"""The page `docs/exhibits.md`: every table and figure, and the files that they are made from."""

from headcount.findings.chapters import Chapter, chapters
from headcount.findings.exhibits import Exhibit
from headcount.findings.inputs import with_groups

_INTRODUCTION = """\
# Tables and figures

*Made from the declarations above the functions in `src/headcount/findings`; after changing one,
run `python scripts/exhibits_page.py`.*

A chapter is one rule: `snakemake --cores all headmask` makes the tables and figures of HeadMask.
Tables are `results/<experiment>/tables/<name>.{csv,md,tex,json}`, figures are
`results/<experiment>/figures/<name>.{pdf,svg,png,csv,json}`; the `.json` says how each was made.
An experiment without any file of a kind that an exhibit needs does not have that exhibit. Kinds
in brackets may have no file; `findings/inputs.py` says what files each kind has, and which kinds go
by one name.
"""


def write_listing() -> str:
    """The whole page, Markdown."""
    return "\n".join([_INTRODUCTION, *map(_chapter, chapters())])


def _chapter(chapter: Chapter) -> str:
    rows = [_row(f"`{e.name}`", e.form, e.title, _kinds(e)) for e in chapter.exhibits]
    head = [_row("name", "form", "what it is", "made from"), _row("---", "---", "---", "---")]
    return f"## {chapter.title}: `{chapter.name}`\n\n{''.join([*head, *rows])}"


def _kinds(exhibit: Exhibit) -> str:
    """What it needs; in brackets what it takes if there is any."""
    return ", ".join(
        [*with_groups(exhibit.needs), *(f"({kind})" for kind in with_groups(exhibit.uses))]
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
