"""The keys and values that a settings class expects, read from its JSON schema."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

Node = dict[str, Any]
KeyPath = tuple[str | int, ...]

_TYPES = {
    **{"integer": "whole number", "string": "text"},
    **{"boolean": "true or false", "object": "mapping"},
}
_LIMITS = {
    **{"minimum": "≥ {}", "exclusiveMinimum": "> {}", "minItems": "of at least {}"},
    **{"maximum": "≤ {}", "exclusiveMaximum": "< {}"},
}


class Schema:
    """The JSON schema of a settings class, with a way to each of its keys."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.root = _json_schema(model)
        self._renamed = getattr(model, "renamed", {})

    def at(self, path: KeyPath) -> Node | None:
        """Return the schema of the value at a key path, or None if there is none."""
        nodes = [self.root]
        for key in path:
            nodes = [child for node in nodes for child in self._children(node, key)]
        return nodes[0] if nodes else None

    def keys(self, path: KeyPath) -> list[str]:
        """Return the keys of the mapping at a key path; none if any name is allowed."""
        node = self.at(path)
        names = [key for o in self.options(node) for key in _names(o)] if node else []
        return [key for key in names if ".".join(map(str, (*path, key))) not in self._renamed]

    def words(self, node: Node) -> str:
        """Describe the values that a schema allows, as in 'number ≥ 0 and < 1'."""
        return " or ".join(map(self._kind, self.options(node)))

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
            some = [option.get(others), *option.get("patternProperties", {}).values()]
            found = [option["properties"][key]] if key in option.get("properties", {}) else some
            yield from (child for child in found if isinstance(child, dict))

    def _kind(self, node: Node) -> str:
        if values := node.get("enum", [node["const"]] if "const" in node else []):
            return " or ".join(map(str, values))
        words = _TYPES.get(node["type"], node["type"])
        if node["type"] == "array":
            words = f"list of ({self.words(node['items'])})"
        limits = [phrase.format(node[key]) for key, phrase in _LIMITS.items() if key in node]
        return " ".join([words, " and ".join(limits)]).strip()


def _names(node: Node) -> list[str]:
    return list(node.get("properties", node.get("propertyNames", {}).get("enum", [])))


@cache  # it takes longer to make than to read
def _json_schema(model: type[BaseModel]) -> Node:
    return model.model_json_schema()
