"""The peers' packages: optional, pinned in requirements.txt, named when they lack."""

import argparse
import importlib.util
from collections.abc import Mapping
from types import ModuleType

from headcount.base.errors import UserError, optional_package

INSTALLED = "installed"


def load_peer(package: str) -> ModuleType:
    """The imported package of a peer; raises EnvironmentFault with the remedy where it lacks."""
    return optional_package(
        package,
        "a peer of this benchmark",
        "run `python -m pip install -r benchmarks/requirements.txt`, or leave this peer out of "
        "--peers",
    )


def add_peers_flag(parser: argparse.ArgumentParser, known: Mapping[str, str]) -> None:
    """Declare `--peers`, by default all of those known."""
    parser.add_argument(
        "--peers",
        default=",".join(known),
        help="those to measure against, joined by commas; `installed`: all that are",
    )


def chosen_peers(text: str, known: Mapping[str, str]) -> list[str]:
    """Names of peers, as asked for; `known` has the package that each one needs.

    `installed` asks for those whose package is there. Raises UserError for a name that is not
    known, EnvironmentFault for a package that lacks.
    """
    if text == INSTALLED:
        return [name for name, package in known.items() if importlib.util.find_spec(package)]
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            raise UserError(f"--peers: expected some of {', '.join(known)}; found {name!r}")
        load_peer(known[name])
    return names
