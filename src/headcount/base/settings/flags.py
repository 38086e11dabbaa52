"""Sections of settings as command lines, written by the workflow and read by scripts."""

import argparse
import json
from typing import Any, TypeVar

from headcount.base.errors import UserError
from headcount.base.settings.checking import Schema, checked, dotted, keyed
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.reader import read_value
from headcount.base.settings.runs import PrunedSettings, Run
from headcount.base.settings.section import Section

AnySection = TypeVar("AnySection", bound=Section)
AnyRun = TypeVar("AnyRun", bound=Run)


def add_flags(parser: argparse.ArgumentParser, section: type[Section]) -> None:
    """Declare one flag per key, with its meaning and default. Two sections must share no key."""
    schema, text = Schema(section), " ".join(section.__doc__.split())
    group = parser.add_argument_group(text.replace("%", "%%"))
    for name, field in section.model_fields.items():
        words = f"{' '.join(field.description.split())} [{schema.words(schema.at((name,)))}]"
        if not field.is_required() and field.default not in (None, ""):
            words += f" (default: {_text(field.default)})"
        flag, words = _flag(section, name), words.replace("%", "%%")
        # A flag that is left out leaves no trace, so that the section alone knows its default.
        group.add_argument(flag, dest=flag, default=argparse.SUPPRESS, metavar="X", help=words)


def from_flags(namespace: argparse.Namespace, section: type[AnySection]) -> AnySection:
    """Return the section of parsed flags. Raises UserError that names each flag at fault."""
    schema, flags, given = Schema(section), vars(namespace), {}
    for name in section.model_fields:
        flag = _flag(section, name)
        if flag in flags:
            is_text = schema.is_text(schema.at((name,)))
            given[name] = flags[flag] if is_text else read_value(flags[flag], flag)
    return checked(section, given, lambda key: f"{_flag(section, dotted(key))}: " if key else "")


def as_flags(section: Section, *keys: str) -> list[str]:
    """Return these keys of a section, or all, as arguments, without those that are None."""
    arguments = []
    for name, value in section.model_dump(include=set(keys) or None, exclude_none=True).items():
        # argparse takes a separate argument that begins with a hyphen for another flag.
        flag, text = _flag(type(section), name), _text(value)
        arguments += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return arguments


def run_as_flag(run: Run) -> str:
    """Return the settings of a run as the value of `--run`."""
    return run.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True)


def read_run_flag(text: str, kind: type[AnyRun], model: ModelSettings) -> AnyRun:
    """Return the run that `--run` has, for a model. A pruned run's start keeps its dropout."""
    named = checked(kind, read_value(text, "--run"), lambda path: f"--run: {keyed(path)}")
    try:
        run = named.counted(model)
    except ValueError as fault:
        raise UserError(f"--run: {fault}") from None
    if isinstance(run, PrunedSettings) and not run.from_none:
        start = run.init_from.model_copy(update={"dropout": named.init_from.dropout})
        run = run.model_copy(update={"init_from": start})
    return run


def _flag(section: type[Section], name: str) -> str:
    return "--" + (section.flag_prefix + name).replace("_", "-")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
