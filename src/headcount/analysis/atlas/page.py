"""The page of the atlas: one file that opens offline, with its data and its programs."""

import json
from pathlib import Path
from typing import Any

import vl_convert
from markupsafe import Markup

from headcount.analysis.atlas.charts import charts
from headcount.base.templates import fill_page

_HERE = Path(__file__)
_LIBRARY = "window.vegaEmbed = vegaEmbed;"  # the part of Vega that charts.js calls


def write_page(content: dict[str, Any], origin: dict[str, Any]) -> str:
    """Return the HTML of the page from `tables.general.atlas.content`."""
    parts: dict[str, Any] = {"made": origin, "data": None, "library": "", "script": ""}
    if content["models"]:
        version = vl_convert.get_vegalite_versions()[-1]
        parts["data"] = Markup(_inside_script(content | charts()))
        parts["library"] = Markup(vl_convert.javascript_bundle(_LIBRARY, vl_version=version))
        files = (_HERE.with_name("charts.js"), _HERE.with_suffix(".js"))
        parts["script"] = Markup("\n".join(file.read_text(encoding="utf-8") for file in files))
    return fill_page(_HERE.with_suffix(".html"), parts)


def _inside_script(value: Any) -> str:
    """Return JSON that cannot end an element of HTML."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
