"""Faults in settings: pydantic's errors, with the place and a hint."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from headcount.base.errors import UserError
from headcount.base.settings.names import nearest
from headcount.base.settings.reading.schema import KeyPath, Schema

Settings = TypeVar("Settings", bound=BaseModel)

_LONGEST = 60


def checked(model: type[Settings], given: Any, place: Callable[[KeyPath], str]) -> Settings:
    """Return given values as settings. Raises UserError with one line per fault.

    `place` returns the start of a line for the key path of the wrong value.
    """
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
    path = _path(item, given)
    last = item["loc"][-1] if item["loc"] else ""
    if item["type"] == "extra_forbidden":
        return path, _unknown(str(last), path[:-1], schema)
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "value_error":
        key, _, rest = message.partition(": ")
        deeper = (*path, *key.split("."))
        return (deeper, rest) if _exists(deeper, given) or schema.at(deeper) else (path, message)
    if item["type"] == "missing":
        return path, message
    inside = last and last not in path[-1:] and schema.at((*path, last))  # of a run's short name
    return path, f"{f'{last}: ' if inside else ''}{message}, found {shown(item['input'])}"


def _path(item: Any, given: Any) -> KeyPath:
    """Return pydantic's location without its names of union branches."""
    path: list[str | int] = []
    for key in item["loc"]:
        if _exists([key], given):
            path.append(key)
            given = given[key]
    return (*path, item["loc"][-1]) if item["type"] == "missing" else tuple(path)


def _exists(path: KeyPath, given: Any) -> bool:
    for key in path:
        is_index = isinstance(given, list) and isinstance(key, int) and key < len(given)
        if not is_index and not (isinstance(given, dict) and key in given):
            return False
        given = given[key]
    return True


def _unknown(key: str, place: KeyPath, schema: Schema) -> str:
    homes = [section for section in schema.keys(()) if key in schema.keys((section,))]
    hint = f"it is a key of {' and of '.join(homes)}" if homes else ""
    return f"unknown key; {hint or nearest(key, schema.keys(place))}"
