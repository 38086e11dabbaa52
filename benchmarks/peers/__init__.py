"""The peers' packages: optional, pinned in requirements.txt, named when they lack."""

import argparse
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from headcount.base.errors import EnvironmentFault, UserError

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"

INSTALLED = "installed"


def load_peer(package: str) -> ModuleType:
    """The imported package of a peer; raises EnvironmentFault naming the requirement it lacks."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as fault:
        if fault.name != package:
            raise
        raise EnvironmentFault(
            f"this benchmark measures against {_requirement(package)}, which is not installed; "
            "run `python -m pip install -r benchmarks/requirements.txt`, "
            "or leave this peer out of --peers"
        ) from fault


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


def _requirement(package: str) -> str:
    """The line of requirements.txt that pins a package."""
    lines = REQUIREMENTS.read_text().splitlines()
    return next(line.split("#")[0].strip() for line in lines if line.startswith(f"{package}=="))
