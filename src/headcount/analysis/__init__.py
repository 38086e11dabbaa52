"""Tables, figures, claims and the report, made from results."""

from pathlib import Path
from typing import Any

from pydantic import RootModel

from headcount.base.errors import require_extra
from headcount.base.settings.reader import read_settings

require_extra("report", ("jinja2", "matplotlib", "scipy", "tabulate", "vl_convert"))


def read_beside(module: str, content: Any = dict[str, Any]) -> Any:
    """Return the YAML file beside the file of a module, checked as `content`."""
    return read_settings(Path(module).with_suffix(".yaml"), RootModel[content]).root
