"""Pages of HTML, from a template and what stands in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2


def fill_page(template: Path, values: Mapping[str, Any]) -> str:
    """The page of a template: what is no Markup is escaped, and a name without a value a fault."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(template.read_text(encoding="utf-8")).render(values) + "\n"
