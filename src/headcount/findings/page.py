"""The report: tables and figures of an experiment on one page that opens offline."""

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from headcount.base.files import read_json, write_text

TEMPLATE = Path(__file__).with_suffix(".html")


def write_report(title: str, tables: list[Path], figures: list[Path], out: Path) -> None:
    """Write one HTML file. `tables` are `.json` files of tables, `figures` are `.svg` files.

    Everything from files is escaped; only the drawings, which this project made, go in as they are.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    shown = [{"name": path.stem, **read_json(path)} for path in tables]
    drawn = [_figure(path) for path in figures]
    write_text(out, template.render(title=title, tables=shown, figures=drawn) + "\n")


def _figure(path: Path) -> dict[str, Any]:
    """A drawing with its caption and provenance, which lie beside it."""
    drawing = path.read_text(encoding="utf-8")
    drawing = drawing[drawing.index("<svg") :]  # the XML declaration has no place inside a page
    return {"name": path.stem, "drawing": Markup(drawing), **read_json(path.with_suffix(".json"))}
