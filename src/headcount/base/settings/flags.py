"""Between settings and plain command lines: one `--flag` per key of a section.

The workflow writes a section out with `as_flags`; a script declares the same section with
`add_flags` and gets it back, equal and checked, from `from_flags`; `read_flags` does both.
"""

import argparse
import json
from typing import Any, TypeVar

from pydantic.fields import FieldInfo

from headcount.base.errors import UserError
from headcount.base.settings.faults import checked, dotted, keyed
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings, Run, label
from headcount.base.settings.schema import KeyPath, Schema
from headcount.base.settings.section import Section

AnySection = TypeVar("AnySection", bound=Section)
AnyRun = TypeVar("AnyRun", bound=Run)


def add_flags(parser: argparse.ArgumentParser, section: type[Section]) -> None:
    """Declare one flag per key, with its meaning and default. Two sections must share no key."""
    schema, meanings = Schema(section), section.meanings()
    group = parser.add_argument_group(" ".join(section.__doc__.split()).replace("%", "%%"))
    for name, field in section.model_fields.items():
        words = f"{' '.join(meanings[name].split())} [{schema.words(schema.at((name,)))}]"
        if shown_default(field):
            words += f" (default: {shown_default(field)})"
        # Left out, a flag leaves no trace: the section alone knows what happens then.
        group.add_argument(
            _flag(section, name),
            dest=_flag(section, name),
            default=argparse.SUPPRESS,
            metavar="X",
            help=words.replace("%", "%%"),
        )


def from_flags(namespace: argparse.Namespace, section: type[AnySection]) -> AnySection:
    """The section that parsed flags describe. Raises UserError naming each flag at fault."""
    schema = Schema(section)
    given = {
        name: _value(found, schema.is_text(schema.at((name,))))
        for name in section.model_fields
        if (found := vars(namespace).get(_flag(section, name))) is not None
    }

    def place(path: KeyPath) -> str:
        name = str(path[0]) if path else ""
        return f"{_flag(section, name)}{dotted(path).removeprefix(name)}: " if path else ""

    return checked(section, given, place)


def read_flags(
    parser: argparse.ArgumentParser, *sections: type[Section]
) -> tuple[argparse.Namespace | Section, ...]:
    """What the command line gives: the parser's own flags, then each of these sections."""
    for section in sections:
        add_flags(parser, section)
    args = parser.parse_args()
    return args, *(from_flags(args, section) for section in sections)


def as_flags(section: Section, *keys: str) -> list[str]:
    """These keys of a section, without any all, as arguments; one without a value (None) not."""
    arguments = []
    for name, value in section.model_dump(include=set(keys) or None).items():
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        # argparse takes a separate argument that begins with a hyphen for another flag.
        flag = _flag(type(section), name)
        arguments += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return arguments


def read_run_flag(text: str, kind: type[AnyRun], model: ModelSettings, *methods: str) -> AnyRun:
    """The run that `--run` names, by its short name or as JSON, in an experiment of such models.

    `model`: of a pruned run that which is pruned. It has its start's dropout, which the
    experiment's may have not, so that a dropout in the start's name stays there. Raises UserError
    for one that does not exist, and for one of another method than `methods`, where any are given.
    """
    given = _value(text, is_text=False)
    named = checked(kind, given, lambda path: f"--run: {text[:100]!r}: {keyed(path)}")
    try:
        run = named.counted(model)
    except ValueError as fault:
        raise UserError(f"--run: {fault}") from None
    if isinstance(run, PrunedSettings) and not run.from_none:
        start = run.init_from.model_copy(update={"dropout": named.init_from.dropout})
        run = run.model_copy(update={"init_from": start})
    if methods and run.method not in methods:
        others = (label(run.model_copy(update={"method": method})) for method in methods)
        raise UserError(f"--run: expected {' or '.join(others)} here, found {text[:100]!r}")
    return run


def shown_default(field: FieldInfo) -> str:
    """A key's default as it is written; empty for a key that has none, or none of its own."""
    default = field.default
    if field.is_required() or default in (None, "") or isinstance(default, Section):
        return ""
    return default if isinstance(default, str) else json.dumps(default)


def _flag(section: type[Section], name: str) -> str:
    return "--" + (section.flag_prefix + name).replace("_", "-")


def _value(text: str, is_text: bool) -> Any:
    if is_text:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
