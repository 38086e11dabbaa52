"""Pages: the report of an experiment, which opens offline, and the list of all exhibits."""

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from headcount.base.errors import UserError
from headcount.base.files import read_json, write_text
from headcount.findings.chapters import chapters
from headcount.findings.exhibits import Exhibit
from headcount.findings.inputs import with_groups

TEMPLATE = Path(__file__).with_suffix(".html")
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


def write_report(title: str, exhibits: list[Path], out: Path) -> None:
    """Write one HTML file of exhibits: their `.json` files; a drawing lies beside as `.svg`.

    Everything from files is escaped; only the drawings, which this project made, go in as they are.
    Raises UserError for a file of no exhibit.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    files = {f"{path.parent.name}/{path.name}": path for path in exhibits}
    shown = []
    for chapter in chapters():
        given = [each for each in chapter.exhibits if each.files[-1] in files]
        if given:
            found = [_exhibit(each, files.pop(each.files[-1])) for each in given]
            shown.append({"name": chapter.name, "title": chapter.title, "exhibits": found})
    if files:
        name, path = files.popitem()
        raise UserError(
            f"{path}: expected a file of a declared table or figure, found no {name} among them; "
            "docs/exhibits.md lists them"
        )
    write_text(out, template.render(title=title, chapters=shown) + "\n")


def _exhibit(exhibit: Exhibit, path: Path) -> dict[str, Any]:
    """What the page shows of one exhibit: a table's cells, or a figure's drawing."""
    names = {"form": exhibit.form, "name": exhibit.name, "title": exhibit.title}
    shown = names | read_json(path)
    if exhibit.form == "figure":
        drawing = path.with_suffix(".svg").read_text(encoding="utf-8")
        # The XML declaration has no place inside a page.
        shown["drawing"] = Markup(drawing[drawing.index("<svg") :])
    return shown


def write_listing() -> str:
    """The whole page `docs/exhibits.md`: every table and figure, and what it is made from."""
    parts = [_INTRODUCTION]
    for chapter in chapters():
        rows = [("name", "form", "what it is", "made from"), ["---"] * 4]
        for each in chapter.exhibits:
            kinds = [*with_groups(each.needs), *(f"({kind})" for kind in with_groups(each.uses))]
            rows.append((f"`{each.name}`", each.form, each.title, ", ".join(kinds)))
        lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        parts.append(f"## {chapter.title}: `{chapter.name}`\n\n{lines}")
    return "\n".join(parts)
