"""The head atlas: one page, with all that draws it, that opens offline and asks no network."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair
import vl_convert
from markupsafe import Markup

from headcount.base.templates import fill_page
from headcount.findings import exhibits
from headcount.findings.atlas.charts import charts
from headcount.findings.atlas.data import atlas_data
from headcount.findings.results import Results

_HERE = Path(__file__)
_LIBRARY = "window.vegaEmbed = vegaEmbed;"  # what charts.js calls of Vega's


@exhibits.page(
    "atlas",
    needs=(),
    uses=(
        "measures",
        "loss_change",
        "more_measures",
        "attention",
        "positions",
        "syntax",
        "sentence_maps",
        "pruned_roles",
        "pruned_sentence_maps",
        "pruned_heads",
        "gates",
        "masks",
        "ablation",
        "training_heads",
    ),
)
def atlas(results: Results) -> Callable[[dict[str, Any]], str]:
    """All heads of all models, to explore.

    Returns what makes the page of its provenance. Without a head that was measured it says so.
    """
    return lambda origin: write_page(atlas_data(results), origin)


def write_page(data: dict[str, Any], origin: dict[str, Any]) -> str:
    """The page's HTML; `data`: see `atlas_data`."""
    parts: dict[str, Any] = {"made": origin, "data": None, "library": "", "script": ""}
    if data["models"]:
        version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
        parts["data"] = Markup(_inside_script(data | {"charts": charts()}))
        parts["library"] = Markup(vl_convert.javascript_bundle(_LIBRARY, vl_version=version))
        files = (_HERE.with_name("charts.js"), _HERE.with_suffix(".js"))
        parts["script"] = Markup("\n".join(file.read_text(encoding="utf-8") for file in files))
    return fill_page(_HERE.with_suffix(".html"), parts)


def _inside_script(value: Any) -> str:
    """JSON that can end no element of HTML, whatever its texts."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
