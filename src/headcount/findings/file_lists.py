"""Scripts that make tables or figures from files of many runs: their flags and their one call."""

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.section import Section


@dataclass(frozen=True)
class NamedTable:
    """A table that knows its name, as the old way has it."""

    name: str
    tidy: pd.DataFrame
    shown: pd.DataFrame
    caption: str


@dataclass(frozen=True)
class NamedFigure:
    """A figure that knows its name, as the old way has it."""

    name: str
    drawing: Figure
    data: pd.DataFrame
    caption: str


def some_files(words: str) -> Any:
    """Field of a dataclass: a list of one file or more; `words` say which, as help of its flag."""
    return field(metadata={"words": words, "number": "+"})


def any_files(words: str) -> Any:
    """As `some_files`, but the list may be empty; its flag has to be given all the same."""
    return field(metadata={"words": words, "number": "*"})


def write_findings(
    script: str,
    description: str,
    kind: type,
    sections: dict[str, type[Section]],
    make: Callable[..., list[Any]],
    write: Callable[[dict[str, Any], Path, dict[str, Any]], None],
) -> None:
    """Read a script's flags, make all findings from files, then write them into a folder.

    `make(files, *settings)` returns tables or figures; what it raises leaves nothing written.
    `files` is of `kind`, a dataclass of `some_files` and `any_files`, a flag each; `settings` are
    those of `sections`. `script` is its path, for the origin of what `write` writes.
    """
    parser = command.parser(description)
    lists = fields(kind)
    for each in lists:
        _add_files(parser, each)
    parser.add_argument("--out", required=True, type=Path, help="folder to write to")
    for section in sections.values():
        add_flags(parser, section)
    args = parser.parse_args()
    files = kind(*(getattr(args, each.name) for each in lists))
    settings = {name: from_flags(args, section) for name, section in sections.items()}
    shown = {name: section.model_dump() for name, section in settings.items()}
    inputs = [path for each in lists for path in getattr(files, each.name)]
    origin = provenance(script, shown, None, inputs)
    found = make(files, *settings.values())
    write({each.name: each for each in found}, args.out, origin)


def _add_files(parser: ArgumentParser, each: Field) -> None:
    flag = f"--{each.name.replace('_', '-')}"
    words, number = each.metadata["words"], each.metadata["number"]
    parser.add_argument(flag, required=True, nargs=number, type=Path, help=words)
