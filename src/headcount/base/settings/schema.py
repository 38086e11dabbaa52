"""What a settings class asks for at each key, in plain words, read off its JSON schema."""

from functools import cache
from typing import Any

from pydantic import BaseModel

Node = dict[str, Any]
KeyPath = tuple[str | int, ...]

_TYPES = {"integer": "a whole number", "number": "a number", "string": "text"}


class Schema:
    """The JSON schema of a settings class, with a way down to each of its keys."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._root = _json_schema(model)
        self._definitions = self._root.get("$defs", {})

    def at(self, path: KeyPath) -> Node | None:
        """Schema of the value at a key path (list entries by number); None if there is none."""
        nodes = [self._root]
        for key in path:
            nodes = [child for node in nodes for child in self._children(node, key)]
        return nodes[0] if nodes else None

    def keys(self, path: KeyPath) -> list[str]:
        """Keys that the mapping at a key path may have; empty where any name will do."""
        node = self.at(path)
        return [key for option in self._options(node) for key in _names(option)] if node else []

    def words(self, node: Node) -> str:
        """What is expected of a value with this schema: 'a number, 0 or more and less than 1'."""
        return " or ".join(map(self._kind, self._options(node)))

    def is_text(self, node: Node) -> bool:
        """Whether the value is free text, and nothing else but None."""
        options = self._options(node)
        return all(each["type"] == "string" and "enum" not in each for each in options)

    def _options(self, node: Node) -> list[Node]:
        """What a value may be, None apart: each a schema without reference or choice."""
        if "$ref" in node:
            node = self._definitions[node["$ref"].rsplit("/", 1)[1]]
        if "anyOf" in node:
            return [option for each in node["anyOf"] for option in self._options(each)]
        return [] if node.get("type") == "null" else [node]

    def _children(self, node: Node, key: str | int) -> list[Node]:
        found = []
        for option in self._options(node):
            others = option.get("additionalProperties")
            if isinstance(key, int):
                found += [option["items"]] if "items" in option else []
            elif key in option.get("properties", {}):
                found.append(option["properties"][key])
            elif isinstance(others, dict):
                found.append(others)
        return found

    def _kind(self, node: Node) -> str:
        values = node.get("enum", [node["const"]] if "const" in node else [])
        if values:
            *others, last = map(str, values)
            return f"{', '.join(others)} or {last}" if others else last
        if node.get("type") == "boolean":
            return "true or false"
        if node.get("type") == "array":
            least = node.get("minItems", 0)
            entries = f" (each {self.words(node['items'])})" if "items" in node else ""
            return "a list" + (f" of at least {least}" if least else "") + entries
        if node.get("type") == "object":
            keys = _names(node)
            return f"a mapping with keys from {', '.join(keys)}" if keys else "a mapping"
        return _TYPES[node["type"]] + _range(node)


@cache  # the making of one takes longer than all that is asked of it
def _json_schema(model: type[BaseModel]) -> Node:
    return model.model_json_schema()


def _names(node: Node) -> list[str]:
    return list(node.get("properties", node.get("propertyNames", {}).get("enum", [])))


def _range(node: Node) -> str:
    if "minimum" in node and "maximum" in node:
        return f" from {node['minimum']} to {node['maximum']}"
    phrases = {
        "minimum": "{} or more",
        "exclusiveMinimum": "more than {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "less than {}",
        "minLength": "{} or more characters",
        "maxLength": "at most {} characters",
    }
    limits = [phrase.format(node[key]) for key, phrase in phrases.items() if key in node]
    return f", {' and '.join(limits)}" if limits else ""
