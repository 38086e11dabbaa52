"""Messages of pydantic's validation errors: the key, the expected value and the value found."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from headcount.base.errors import UserError
from headcount.base.settings.names import nearest
from headcount.base.settings.schema import KeyPath, Schema

Settings = TypeVar("Settings", bound=BaseModel)

_MOST_LINES = 9
_LONGEST = 60


def checked(model: type[Settings], given: Any, place: Callable[[KeyPath], str]) -> Settings:
    """What is given, as settings. Raises UserError with a line for each fault.

    `place`: what a line begins with, by the key path of the wrong value in what is given (empty:
    the whole). The tail of a long list is only counted.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        items = error.errors(include_url=False)
    schema = Schema(model)
    found: dict[KeyPath, str] = {}
    for item in items:
        path = _path(item, given)
        found.setdefault(path, _message(item, path, schema))
    # A value that fits no branch of a union is reported by each; the deepest report says most.
    lines = [
        place(path) + message
        for path, message in found.items()
        if not any(other[: len(path)] == path for other in found if other != path)
    ]
    if more := lines[_MOST_LINES:]:
        lines[_MOST_LINES:] = [f"… and {len(more)} more faults"]
    raise UserError("\n".join(lines))


def keyed(path: KeyPath) -> str:
    """What stands before a message about the value at a key path; nothing for the whole."""
    return f"{dotted(path)}: " if path else ""


def dotted(path: KeyPath) -> str:
    """A key path as people read it: train.keep_updates[0]; odd names are quoted."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + (key if re.fullmatch(r"[\w.-]+", key) else shown(key))
    return text


def shown(value: Any) -> str:
    """A value on one short line, as it would stand in the file."""
    text = repr(value) if isinstance(value, str | float) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _path(item: Any, given: Any) -> KeyPath:
    """Pydantic's location without its own words: union branches and the like."""
    path: list[str | int] = []
    for key in item["loc"]:
        is_key = isinstance(given, dict) and key in given
        if is_key or (isinstance(given, list) and isinstance(key, int) and key < len(given)):
            path.append(key)
            given = given[key]
    if item["type"] == "missing":
        path.append(item["loc"][-1])
    return tuple(path)


def _message(item: Any, path: KeyPath, schema: Schema) -> str:
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    key = item["loc"][-1] if item["loc"] else ""
    if item["type"] == "extra_forbidden" or key == "[key]":
        return _unknown(str(path[-1]), path[:-1], schema)
    if key and key not in path[-1:] and (node := schema.at((*path, key))):
        # What is given has no keys: it is a name that stands for a mapping.
        return f"{key}: expected {schema.words(node)}, found {shown(item['input'])}"
    node = schema.at(path)
    expected = schema.words(node) if node else item["msg"]
    if item["type"] == "missing":
        return f"missing; expected {expected}"
    message = f"expected {expected}, found {shown(item['input'])}"
    if isinstance(item["input"], bool | int | float) and node and schema.is_text(node):
        message += "; quote it"
    return message


def _unknown(key: str, place: KeyPath, schema: Schema) -> str:
    homes = [section for section in schema.keys(()) if key in schema.keys((section,))]
    if homes:
        return f"unknown key; it is a key of {' and of '.join(homes)}"
    return f"unknown key; {nearest(key, schema.keys(place))}"
