"""Faults in settings: pydantic's errors, each with its place and a hint."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from headcount.base.errors import UserError
from headcount.base.settings.names import nearest
from headcount.base.settings.reading.schema import KeyPath, Schema

Settings = TypeVar("Settings", bound=BaseModel)

_MOST_LINES = 9
_LONGEST = 60


def checked(model: type[Settings], given: Any, place: Callable[[KeyPath], str]) -> Settings:
    """Return given values as settings. Raises UserError with a line for each fault.

    `place` returns the start of a line for the key path of the wrong value.
    """
    if old := _old_keys(model, given):
        raise UserError("\n".join(place(path) + f"is now {new}" for path, new in old.items()))
    schema, found = Schema(model), {}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        items = error.errors(include_url=False)
    for item in items:
        path = _path(item, given)
        message = _message(item, path, schema)
        key, _, rest = message.partition(": ")
        if item["type"] == "value_error" and schema.at(deeper := (*path, *key.split("."))):
            path, message = deeper, rest
        found.setdefault(path, []).append(message)
    lines = [  # each branch of a union reports a value that fits none; the deepest says most
        place(path) + "; or ".join(dict.fromkeys(messages))
        for path, messages in found.items()
        if not any(other[: len(path)] == path for other in found if other != path)
    ]
    if more := lines[_MOST_LINES:]:
        lines[_MOST_LINES:] = [f"… and {len(more)} more faults"]
    raise UserError("\n".join(lines))


def keyed(path: KeyPath) -> str:
    """Return the start of a message about the value at a key path; empty for the whole."""
    return f"{dotted(path)}: " if path else ""


def dotted(path: KeyPath) -> str:
    """Return a key path as people read it: train.keep_updates[0]; odd names are quoted."""
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


def _old_keys(model: type[BaseModel], given: Any) -> dict[KeyPath, str]:
    """Return the new name of each old key that is given, by its path."""
    found = {}
    for old, new in getattr(model, "renamed", {}).items():
        section, _, key = old.partition(".")
        values = given.get(section) if isinstance(given, dict) else None
        if isinstance(values, dict) and key in values:
            found[section, key] = new
    return found


def _path(item: Any, given: Any) -> KeyPath:
    """Return pydantic's location without its names of union branches."""
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
    key = item["loc"][-1] if item["loc"] else ""
    if item["type"] == "extra_forbidden":
        return _unknown(str(key), path[:-1], schema)
    if item["type"] in ("value_error", "missing"):
        return item["msg"].removeprefix("Value error, ")
    inside = key and key not in path[-1:] and schema.at((*path, key))  # of a run's short name
    return f"{f'{key}: ' if inside else ''}{item['msg']}, found {shown(item['input'])}"


def _unknown(key: str, place: KeyPath, schema: Schema) -> str:
    homes = [section for section in schema.keys(()) if key in schema.keys((section,))]
    hint = f"it is a key of {' and of '.join(homes)}" if homes else ""
    return f"unknown key; {hint or nearest(key, schema.keys(place))}"
