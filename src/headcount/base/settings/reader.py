"""The one reader of YAML, strict enough that every other reader sees the same words.

YAML 1.1 (PyYAML, in Snakemake) and YAML 1.2 (ruamel, in DVC) read some plain words differently:
`no`, `010`, `12:30:45`. Such words stop here with advice; `1e-2` is a number. Tags, anchors,
aliases, merge keys, repeated keys and tabs stop as well.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import yaml
from yaml.composer import Composer
from yaml.cyaml import CParser
from yaml.resolver import Resolver

from headcount.base.errors import UserError
from headcount.base.settings.faults import Settings, checked, keyed, shown
from headcount.base.settings.schema import KeyPath

_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+)")
# Text to PyYAML, but not to every other reader: words, odd spellings of numbers, octal numbers.
_UNSURE = re.compile(
    r"(?i)y|n|yes|no|on|off|true|false|null|[-+]?\.(inf|nan)"
    r"|[-+]?(?=\.?[0-9_])[0-9_]*\.?[0-9_]*(e[-+]?[0-9]+)?|0o[0-7]+"
)
# Tabs and byte order marks, which libyaml reads where others stop; and what YAML has nowhere.
_STRAY = re.compile(r"[^\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_KINDS = {"mapping": "a mapping", "sequence": "a list", "scalar": "a single value"}
_LONGEST_NUMBER = 40


def read_settings(path: Path, model: type[Settings]) -> Settings:
    """The settings in a YAML file, checked.

    Raises UserError that lists each fault as `file:line: key.path: what is wrong`.
    """
    values, lines = _parse(path)
    return checked(model, values, lambda key: f"{path}:{_line(key, lines)}: {keyed(key)}")


@contextmanager
def at_key_of(path: Path) -> Iterator[None]:
    """Faults that begin with a key of a file of settings, `key.path: `, get file and line, too.

    For what is found out beside another file, such as the corpora, once this one has been read. A
    fault that begins with the path of another file stays as it is.
    """
    try:
        yield
    except UserError as fault:
        place = str(fault).partition(": ")[0]
        if "/" in place:
            raise
        key = tuple(place.split("."))
        raise UserError(f"{path}:{_line(key, _parse(path)[1])}: {fault}") from None


def _line(key: KeyPath, lines: dict[KeyPath, int]) -> int:
    """The line of a key path; of a missing one, which has none, that of its mapping."""
    while key not in lines:
        key = key[:-1]
    return lines[key]


def _parse(file: Path) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """Values of a file's top-level mapping, and the line (from 1) of every key path in it."""
    try:
        root = _Composer(_text(file)).get_single_node()
        if not isinstance(root, yaml.MappingNode):
            found = _KINDS[root.id] if root else "nothing"
            raise UserError(f"{file}:1: expected keys and values (`key: value`), found {found}")
        lines: dict[KeyPath, int] = {}
        return _value(root, (), lines), lines
    except yaml.MarkedYAMLError as error:
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        raise UserError(f"{file}:{mark.line + 1 if mark else 1}: {reason}") from None
    except RecursionError:
        raise UserError(f"{file}: lists or mappings are nested too deeply") from None


def _text(file: Path) -> str:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UserError(
            f"{file}:{line}: expected UTF-8 text, found byte 0x{raw[error.start]:02x} "
            f"at offset {error.start}; save the file as UTF-8"
        ) from None
    if stray := _STRAY.search(text):
        raise UserError(
            f"{file}:{text[: stray.start()].count(chr(10)) + 1}: the character "
            f"U+{ord(stray[0]):04X} is not read here; write spaces instead, or nothing"
        )
    return text


class _Composer(Composer, CParser, Resolver):
    """PyYAML up to its nodes, without the features in which a value can hide."""

    # Not ruamel.yaml: it takes `no` and `010` in silence, and of a repeated key names no key path.
    # Not yaml.SafeLoader: corpora.yaml took it ten times as long as libyaml.

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        Resolver.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> yaml.Node:
        event = self.peek_event()
        if event.anchor is not None:
            _stop(event, (), "anchors (&) and aliases (*) are not read; write the value out")
        if event.tag is not None:
            _stop(event, (), f"tags ({shown(event.tag)}) are not read; remove it")
        return super().compose_node(parent, index)


def _value(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> Any:
    """The node's value. `lines` gets the line of every key path; of an entry that of its key."""
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_value(entry, (*path, i), lines) for i, entry in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, path)
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(key_node, path)
        here = (*path, key)
        if key in values:
            _stop(key_node, here, f"stands in line {lines[here]} already; keep one of them")
        lines[here] = key_node.start_mark.line + 1
        values[key] = _value(value_node, here, lines)
    return values


def _key(node: yaml.Node, path: KeyPath) -> str:
    if not isinstance(node, yaml.ScalarNode):
        _stop(node, path, f"expected plain text as a key, found {_KINDS[node.id]}")
    if not node.style and node.tag == _MERGE:
        _stop(node, path, "merge keys (<<) are not read; write the keys out")
    key = _scalar(node, (*path, node.value))
    if not isinstance(key, str):
        _stop(node, path, f"keys are text; quote it: {shown(node.value)}")
    return key


def _scalar(node: yaml.ScalarNode, path: KeyPath) -> Any:
    text = node.value
    if node.style:  # quoted, or a block of text
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text) and len(text) <= _LONGEST_NUMBER:
        return int(text)
    if _FLOAT.fullmatch(text) and len(text) <= _LONGEST_NUMBER:
        return float(text)
    if node.tag != _TEXT or _UNSURE.fullmatch(text):
        _stop(node, path, f"{_advice(text)}; if it is text, quote it: {shown(text)}")
    return text


def _stop(at: yaml.Node | yaml.Event, path: KeyPath, reason: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=keyed(path) + reason, problem_mark=at.start_mark)


def _advice(text: str) -> str:
    word = text.lower()
    if word in ("true", "false", "null"):
        return f"expected {word}, found {text}"
    if word in ("y", "yes", "on"):
        return f"{text} is true to one YAML reader and text to another; write true"
    if word in ("n", "no", "off"):
        return f"{text} is false to one YAML reader and text to another; write false"
    if word.lstrip("+-.") in ("inf", "nan"):
        return f"expected a finite number, found {text}"
    return "not the same to every YAML reader; write a number in plain decimal digits"
