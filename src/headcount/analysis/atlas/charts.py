"""The drawings of the atlas as Vega-Lite, from `charts.yaml`; `charts.js` fills and draws them."""

from pathlib import Path
from typing import Any

from pydantic import RootModel

from headcount.base.settings.reading.reader import read_settings


def charts() -> dict[str, Any]:
    """Return the specifications, the scales of their colours and their common style."""
    return read_settings(Path(__file__).with_suffix(".yaml"), RootModel[dict[str, Any]]).root
