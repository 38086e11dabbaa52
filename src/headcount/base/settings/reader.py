"""The reader of all YAML files: plain values, with the line of every key.

`true`, `false`, `null` and decimal numbers such as `1e-2` are values, and every other plain word is
text, also `no` and `010`. Tags, anchors, aliases and repeated keys are refused.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import yaml

from headcount.base.errors import UserError
from headcount.base.settings.checking import KeyPath, Settings, checked, keyed

_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,39})")
_FLOAT = re.compile(r"(?=.{1,40}$)[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+)")
_DEEPEST = 20

Lines = dict[KeyPath, int]


def read_settings(path: Path, model: type[Settings]) -> Settings:
    """Return settings of a YAML file. Raise UserError: a line `file:line: key.path: fault` each."""
    values, lines = _parse(path)
    return checked(model, values, lambda key: f"{path}:{_line(key, lines)}: {keyed(key)}")


@contextmanager
def at_key_of(path: Path) -> Iterator[None]:
    """Add file and line to faults that begin with `key.path: `, but not with another file."""
    try:
        yield
    except UserError as fault:
        place = str(fault).partition(": ")[0]
        if "/" in place:
            raise
        line = _line(tuple(place.split(".")), _parse(path)[1])
        raise UserError(f"{path}:{line}: {fault}") from None


def read_value(text: str, flag: str) -> Any:
    """Return the value of a flag, in YAML or JSON. Raises UserError, which names the flag."""
    try:
        values, _ = _documents(text)
    except yaml.YAMLError as error:
        raise UserError(f"{flag}: {' '.join(str(error).split())}") from None
    return values[0] if values else None


def _line(key: KeyPath, lines: Lines) -> int:
    """Return the line of a key path, or of the mapping that lacks the key."""
    while key not in lines:
        key = key[:-1]
    return lines[key]


def _parse(file: Path) -> tuple[dict[str, Any], Lines]:
    """Return the mapping in a file, and the line (from 1) of every key path in it."""
    try:
        documents, lines = _documents(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read as UTF-8 text: {error}") from None
    except yaml.MarkedYAMLError as error:
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        raise UserError(f"{file}:{mark.line + 1 if mark else 1}: {reason}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{file}: {' '.join(str(error).split())}") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UserError(f"{file}:1: expected keys and values (`key: value`)")
    return documents[0], lines


def _documents(text: str) -> tuple[list[Any], Lines]:
    """Return the documents in a text, and the line of every key path in the last one."""
    lines: Lines = {(): 1}
    events = yaml.parse(text, yaml.CSafeLoader)
    nodes = (event for event in events if isinstance(event, yaml.NodeEvent))
    return [_value(node, events, (), lines) for node in nodes], lines


def _value(event: yaml.Event, events: Iterator[yaml.Event], path: KeyPath, lines: Lines) -> Any:
    """Return the value that begins with an event, and note the line of every key path in it."""
    if event.anchor or getattr(event, "tag", None):
        _stop(event, path, "anchors (&), aliases (*) and tags (!) are not read; remove them")
    if len(path) > _DEEPEST:
        _stop(event, (), "lists or mappings are nested too deeply")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    is_list, values = isinstance(event, yaml.SequenceStartEvent), {}
    while not isinstance(item := next(events), yaml.CollectionEndEvent):
        key = len(values) if is_list else _key(item, events, path)
        here = (*path, key)
        if key in values:
            _stop(item, here, f"stands in line {lines[here]} already; keep one of them")
        lines[here] = item.start_mark.line + 1
        values[key] = _value(item if is_list else next(events), events, here, lines)
    return list(values.values()) if is_list else values


def _key(event: yaml.Event, events: Iterator[yaml.Event], path: KeyPath) -> str:
    is_scalar = isinstance(event, yaml.ScalarEvent)
    key = _value(event, events, (*path, event.value), {}) if is_scalar else None
    if not isinstance(key, str):
        _stop(event, path, "keys are text; quote the key")
    return key


def _scalar(event: yaml.ScalarEvent) -> str | float | bool | None:
    text = event.value
    if not event.implicit[0]:  # quoted, or a block of text
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _stop(at: yaml.Event, path: KeyPath, reason: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=keyed(path) + reason, problem_mark=at.start_mark)
