"""Checks of settings: the keys that a class expects, and pydantic's errors with place and hint."""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from headcount.base.errors import UserError
from headcount.base.settings.section import nearest

Node = dict[str, Any]
KeyPath = tuple[str | int, ...]

_TYPES = {"integer": "whole number", "string": "text", "boolean": "true or false"}
_TYPES |= {"object": "mapping"}
_LIMITS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "minItems": "of at least {}"}
_LIMITS |= {"maximum": "≤ {}", "exclusiveMaximum": "< {}"}


class Schema:
    """The JSON schema of a settings class, with a way to every key."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.root = _json_schema(model)

    def at(self, path: KeyPath) -> Node | None:
        """Return the schema of the value at a key path, or None if there is none."""
        nodes = [self.root]
        for key in path:
            nodes = [child for node in nodes for child in self._children(node, key)]
        return nodes[0] if nodes else None

    def keys(self, path: KeyPath) -> list[str]:
        """Return the keys of the mapping at a key path, and none if any name is allowed."""
        options = self.options(self.at(path) or {"type": "null"})
        names = [o.get("properties", o.get("propertyNames", {}).get("enum", [])) for o in options]
        return [key for keys in names for key in keys]

    def words(self, node: Node) -> str:
        """Describe the values that a schema allows, as in 'number ≥ 0 and < 1'."""
        return " or ".join(map(self._type, self.options(node)))

    def is_text(self, node: Node) -> bool:
        """Return whether the value is free text or None."""
        return all(o["type"] == "string" and "enum" not in o for o in self.options(node))

    def options(self, node: Node) -> list[Node]:
        """Return the alternatives of a schema, without references and without None."""
        if "$ref" in node:
            node = self.root["$defs"][node["$ref"].rsplit("/", 1)[1]]
        if "anyOf" in node:
            return [option for part in node["anyOf"] for option in self.options(part)]
        return [] if node.get("type") == "null" else [node]

    def _children(self, node: Node, key: str | int) -> Iterator[Node]:
        others = "items" if isinstance(key, int) else "additionalProperties"
        for option in self.options(node):
            unnamed = [option.get(others), *option.get("patternProperties", {}).values()]
            named = option.get("properties", {})
            nodes = [named[key]] if key in named else unnamed
            yield from (child for child in nodes if isinstance(child, dict))

    def _type(self, node: Node) -> str:
        if values := node.get("enum", [node["const"]] if "const" in node else []):
            return " or ".join(map(str, values))
        words = _TYPES.get(node["type"], node["type"])
        if node["type"] == "array":
            words = f"list of ({self.words(node['items'])})"
        limits = [phrase.format(node[key]) for key, phrase in _LIMITS.items() if key in node]
        return " ".join([words, " and ".join(limits)]).strip()


@cache  # it takes longer to make than to read
def _json_schema(model: type[BaseModel]) -> Node:
    return model.model_json_schema()


Settings = TypeVar("Settings", bound=BaseModel)

_LONGEST = 60
_RENAMED = {
    **{"rest": "cooldown_updates", "held": "warmup_mask_updates", "after": "start_update"},
    **{"spare": "exclude_kind", "unspaced": "unsegmented_scripts"},
}


def checked(model: type[Settings], given: Any, place: Callable[[KeyPath], str]) -> Settings:
    """Return given values as settings. Raise UserError: a line per fault, begun by `place`."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        items = error.errors(include_url=False)
    schema, faults = Schema(model), {}
    for item in items:
        path, message = _located(item, given, schema)
        faults.setdefault(path, []).append(message)
    lines = [  # every branch of a union reports a value that does not fit; the deepest is clearest
        place(path) + "; or ".join(dict.fromkeys(messages))
        for path, messages in faults.items()
        if not any(other[: len(path)] == path for other in faults if other != path)
    ]
    raise UserError("\n".join(lines))


def keyed(path: KeyPath) -> str:
    """Return the start of a message about the value at a key path, empty for the whole."""
    return f"{dotted(path)}: " if path else ""


def dotted(path: KeyPath) -> str:
    """Return a key path as people read it: train.keep_updates[0]. Odd names are quoted."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + (key if re.fullmatch(r"[\w.-]+", key) else shown(key))
    return text


def shown(value: Any) -> str:
    """Return a value on one short line, as it would stand in the file."""
    text = repr(value) if isinstance(value, str | float) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _located(item: Any, given: Any, schema: Schema) -> tuple[KeyPath, str]:
    """Return key path and message of one of pydantic's errors."""
    path, last = _path(item, given), item["loc"][-1:]
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        return path, _unknown(str(*last), path[:-1], schema)
    if item["type"] == "missing":
        return (*path, *last), message
    if item["type"] == "value_error":  # may begin with the key that is wrong
        key, mark, rest = message.partition(": ")
        return ((*path, *key.split(".")), rest) if mark and " " not in key else (path, message)
    if item["type"] == "model_type":
        message = "expected a mapping, as in {method: random, heads: 6}"
    return path, f"{message}, found {shown(item['input'])}"


def _path(item: Any, given: Any) -> KeyPath:
    """Return pydantic's location without its names of union branches."""
    path: list[str | int] = []
    for key in item["loc"]:
        inside = range(len(given)) if isinstance(given, list) else given
        if isinstance(given, list | dict) and key in inside:
            path.append(key)
            given = given[key]
    return tuple(path)


def _unknown(key: str, place: KeyPath, schema: Schema) -> str:
    known = schema.keys(place)
    if (new := _RENAMED.get(key)) in known:
        return f"unknown key; it is now {new}"
    homes = [section for section in schema.keys(()) if key in schema.keys((section,))]
    hint = f"it is a key of {' and of '.join(homes)}" if homes else ""
    return f"unknown key; {hint or nearest(key, known)}"
