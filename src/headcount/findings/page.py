"""The report: the chapters of an experiment on one page that opens offline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from headcount.base.files import read_json, write_text
from headcount.findings.exhibits import CHAPTERS, Exhibit, load_chapter

TEMPLATE = Path(__file__).with_suffix(".html")


def write_report(title: str, exhibits: list[Path], out: Path) -> None:
    """Write one HTML file of exhibits: `.json` files of tables, `.svg` files of figures.

    Everything from files is escaped; only the drawings, which this project made, go in as they are.
    Raises UserError for a file that is named after no exhibit.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    files = {path.stem: path for path in exhibits}
    chapters = list(_chapters(files))
    if files:  # chapters that are not declared yet
        more = [_exhibit(Exhibit(name, name, "", ()), path) for name, path in files.items()]
        chapters.append({"name": "more", "title": "More", "exhibits": more})
    write_text(out, template.render(title=title, chapters=chapters) + "\n")


def _chapters(files: dict[str, Path]) -> Iterator[dict[str, Any]]:
    """Name, title and exhibits of each chapter that has a file, which is taken out of `files`."""
    for chapter in map(load_chapter, CHAPTERS):
        found = [
            _exhibit(each, files.pop(each.name)) for each in chapter.exhibits if each.name in files
        ]
        if found:
            yield {"name": chapter.name, "title": chapter.title, "exhibits": found}


def _exhibit(exhibit: Exhibit, path: Path) -> dict[str, Any]:
    """What the page shows of one exhibit: a table's cells, or a figure's drawing."""
    shown = {"name": exhibit.name, "title": exhibit.title, **read_json(path.with_suffix(".json"))}
    if path.suffix == ".svg":
        drawing = path.read_text(encoding="utf-8")
        # The XML declaration has no place inside a page.
        shown["drawing"] = Markup(drawing[drawing.index("<svg") :])
    return shown
