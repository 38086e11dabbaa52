"""Where a result came from: command, settings, seed, code, inputs and package versions."""

import platform
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from headcount.base import fingerprint
from headcount.base.files import sha256, write_csv, write_json
from headcount.base.settings.section import Section

_PACKAGES = ("torch", "numpy", "sacrebleu", "subword-nmt", "sacremoses", "pandas", "snakemake")


def provenance(
    script: str,
    settings: dict[str, Any],
    seed: int | None,
    inputs: list[Path],
    modules: Sequence[str] = (),
) -> dict[str, Any]:
    """What made a result, as JSON that says nothing about the machine, the person or the time.

    `script` is relative to the project's root, such as `scripts/text.py`; `modules` are those that
    it imports by their names. `settings` are what it was told, sections by their names. `inputs`
    are hashed (SHA-256) and listed by path, sorted.
    """
    files = fingerprint.code(script, *modules)
    return {
        "command": [_without_home(argument) for argument in sys.argv],
        "settings": {name: _plain(value) for name, value in settings.items()},
        "seed": seed,
        "code": {"digest": fingerprint.digest(files), "files": files},
        "inputs": {_without_home(path.as_posix()): sha256(path) for path in sorted(inputs)},
        "versions": _versions(),
    }


def write_result(
    out: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], facts: dict[str, Any]
) -> None:
    """Write rows as CSV, and beside it a JSON of the same name with `facts`."""
    write_csv(out, columns, rows)
    write_json(out.with_suffix(".json"), facts)


def _plain(value: Any) -> Any:
    """A section of settings as JSON has it; anything else as it is."""
    return value.model_dump() if isinstance(value, Section) else value


def _without_home(argument: str) -> str:
    """The argument with paths below the working folder made relative, and the home folder `~`."""
    for folder, short in ((Path.cwd(), ""), (_home(), "~/")):
        if folder != Path(folder.anchor):
            # Not in the middle of a longer path that ends the same way.
            argument = re.sub(rf"(?<![\w.~-]){re.escape(folder.as_posix())}/", short, argument)
    return argument


def _home() -> Path:
    """The home folder; the root for a user without one, as in a container."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def _versions() -> dict[str, str]:
    """Versions of Python and of those packages that can change a number, where installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
