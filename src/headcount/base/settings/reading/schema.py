"""The keys and values that a settings class expects, read from its JSON schema."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

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
