"""The page of the atlas: one file that opens offline, with its data and its programs."""

import json
from pathlib import Path
from typing import Any

import vl_convert
from markupsafe import Markup

from headcount.analysis import read_beside
from headcount.base.files import fill_page

_HERE = Path(__file__)
_LIBRARY = "window.vegaEmbed = vegaEmbed;"  # the part of Vega that page.js calls


def write_page(content: dict[str, Any], origin: dict[str, Any]) -> str:
    """Return the HTML of the page from `tables.general.atlas.content`."""
    parts: dict[str, Any] = {"made": origin, "data": None, "library": "", "script": ""}
    if content["models"]:
        version = vl_convert.get_vegalite_versions()[-1]
        charts = read_beside(__file__)
        text = json.dumps(
            content | charts, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        parts["data"] = Markup(text.replace("<", "\\u003c"))  # cannot end an element of HTML
        parts["library"] = Markup(vl_convert.javascript_bundle(_LIBRARY, vl_version=version))
        parts["script"] = Markup(_HERE.with_suffix(".js").read_text(encoding="utf-8"))
    return fill_page(_HERE.with_suffix(".html"), parts)
