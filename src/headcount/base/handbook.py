"""The page `settings` of the reference: every key, made from the schemas of the classes."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from headcount.base.files import fill_page
from headcount.base.settings.checking import Node, Schema
from headcount.base.settings.corpora import Corpora
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.model import PRESETS
from headcount.base.settings.pretrained import Models

TEMPLATE = Path(__file__).with_suffix(".md")
_LISTED_ELSEWHERE = {"File", "Source"}  # a side of a split has their keys


def settings_page() -> str:
    """Return the whole page, Markdown."""
    values = {"experiment": Experiment, "corpora": Corpora, "models": Models}
    values = {name: _tables(model) for name, model in values.items()}
    presets = [[f"`{name}`", *sizes.values()] for name, sizes in PRESETS.items()]
    return fill_page(TEMPLATE, values | {"sizes": list(PRESETS["base"]), "presets": presets})


def _tables(model: type[BaseModel]) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield place, description and rows of each mapping of settings in a file, each class once."""
    schema, seen = Schema(model), set(_LISTED_ELSEWHERE)
    waiting = [("", schema.root)]
    while waiting:
        place, node = waiting.pop(0)
        for option in schema.options(node):
            below = [(place, option.get("items"))]
            named = option.get("patternProperties", {}).values()
            named = [option.get("additionalProperties"), *named]
            below += [(f"{place}.<name>".lstrip("."), value) for value in named]
            if "properties" in option and option["title"] not in seen:
                seen.add(option["title"])
                yield place, option["description"], list(_rows(schema, option))
                keys = option["properties"].items()
                below += [(f"{place}.{key}".lstrip("."), value) for key, value in keys]
            waiting = [item for item in below if isinstance(item[1], dict)] + waiting


def _rows(schema: Schema, section: Node) -> Iterator[list[str]]:
    """Yield key, value, default and meaning of every key that files may have."""
    for key, node in section["properties"].items():
        default = f"`{json.dumps(node['default'])}`" if node.get("default") is not None else "none"
        if key in section.get("required", ()):
            default = "from the preset" if key in PRESETS["base"] else "must be given"
        elif isinstance(node.get("default"), dict):
            default = "see below"
        about = node.get("description") or schema.options(node)[0]["description"]
        cells = (f"`{key}`", schema.words(node), default, about)
        yield [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
