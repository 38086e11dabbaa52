"""Pages of HTML and Markdown, from a template and what stands in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2


def fill_page(template: Path, values: Mapping[str, Any]) -> str:
    """Return the filled template. A name without a value is a fault. HTML values are escaped."""
    environment = jinja2.Environment(
        autoescape=template.suffix == ".html",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.from_string(template.read_text(encoding="utf-8")).render(values)
    return page.rstrip("\n") + "\n"
