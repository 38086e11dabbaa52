"""A line of JSON for each table that a benchmark measured, with what it was measured on.

Torch is not imported here: a child process counts the memory that its parent held.
"""

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("ctranslate2", "joeynmt", "transformers")  # packages
Record = dict[str, Any]
"""`benchmark`, `title`, `flags`, `where`, and one of `timed`, `rows` or `failed`."""


def add_results_flag(parser: argparse.ArgumentParser) -> None:
    """Declare `--results`, which every benchmark has that the page of results shows."""
    words = "file that gets a line of JSON with what was measured"
    parser.add_argument("--results", type=Path, help=words)


def append(path: Path | None, record: Record) -> None:
    """Add a line to a file of results; without a file nothing is kept."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def read(path: Path) -> list[Record]:
    """The records of a file. Raises UserError naming a line that is none."""
    return list(_records(path))


def _records(path: Path) -> Iterator[Record]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or not {"benchmark", "title", "where"} <= found.keys():
            raise UserError(
                f"{path}:{number}: expected a record of `python -m benchmarks`, found "
                f"{line[:40]!r}; measure again"
            )
        yield found


def told(args: argparse.Namespace) -> dict[str, Any]:
    """The flags of a benchmark, but for where files lie on this machine."""
    flags = vars(args).items()
    return {name: value for name, value in flags if not isinstance(value, Path | None)}


def where(threads: int | None, gpu: str = "", ceiling: dict[str, float] | None = None) -> Record:
    """Machine, versions, day and commit. `ceiling`: GFLOP/s by number format, if measured."""
    found = {
        "processor": processor(),
        "gpu": gpu,
        "cpus": os.cpu_count(),
        "threads": threads,
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "peers": {name: _version(name) for name in PEERS},
        "date": date.today().isoformat(),
        "commit": commit(),
    }
    if ceiling:
        found["ceiling"] = {name: round(value, 1) for name, value in ceiling.items()}
    return found


def _version(package: str) -> str:
    """Empty where the package is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def processor() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def commit() -> str:
    """The project's commit, and whether its files were changed since; empty outside of git."""
    words = ["git", "describe", "--always", "--exclude=*", "--dirty= (changed)"]
    try:
        found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def joined(values: Sequence[str]) -> str:
    """Different values in their order, with commas."""
    return ", ".join(dict.fromkeys(value for value in values if value))
