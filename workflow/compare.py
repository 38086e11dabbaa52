"""Say which weights, texts and tables differ between two folders of results of one experiment.

    python workflow/compare.py ../other/results/quickstart results/quickstart

Columns that tell the time are left out. Exit code 1 if a file differs, is missing or is new; 2 if
there is nothing to compare.
"""

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from headcount.base import command
from headcount.base.errors import UserError

KINDS = {".safetensors", ".txt", ".csv"}
"""Ends of the files that are compared; others hold records of how these were made, or show them."""
CLOCK = ["seconds", "longest_seconds", "cpu_seconds", "memory_mb", "tokens_per_s", "milliseconds"]
CLOCK += ["speedup", "estimated_seconds"]
SPEED = ["mean", "sd", "low", "high"]
"""Columns of the clock in any table; and those that are so in a table of speed."""
KEPT_OUT = {"logs", "state", "benchmarks"}


def compared(folder: Path) -> set[Path]:
    """Files to compare, by their paths below the folder. Raises UserError if there are none."""
    found = {path.relative_to(folder) for path in folder.rglob("*") if path.suffix in KINDS}
    found = {path for path in found if not KEPT_OUT & set(path.parts)}
    if not found:
        raise UserError(f"{folder}: expected results of an experiment, found none; name another")
    return found


def same(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes, in a table but for columns that tell the time.

    A table that cannot be read is like none but itself.
    """
    if one.read_bytes() == other.read_bytes():
        return True
    try:
        return one.suffix == ".csv" and _without_clock(one) == _without_clock(other)
    except (UnicodeDecodeError, csv.Error):
        return False


def _without_clock(path: Path) -> list[list[str]]:
    """A table's cells as the text that stands there, row by row."""
    clock = {*CLOCK, *(SPEED if path.stem.endswith(("speed", "speedup")) else [])}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    timed = {place for place, name in enumerate(rows[0] if rows else []) if name in clock}
    return [[cell for place, cell in enumerate(row) if place not in timed] for row in rows]


def report(old: Path, new: Path) -> Iterator[str]:
    """A line for each file that is not in both folders or not the same; then how many are in both.

    Raises UserError for a folder without any such file.
    """
    before, after = compared(old), compared(new)
    for path in sorted(before | after):
        if path not in after:
            yield f"{path}: missing from {new}"
        elif path not in before:
            yield f"{path}: not in {old}"
        elif not same(old / path, new / path):
            yield f"{path}: differs"
    yield f"{len(before & after)} files in both"


def main() -> None:
    """Print the differences and how many files were looked at."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="results of an experiment, such as results/tiny")
    parser.add_argument("new", type=Path, help="the same, made another time or elsewhere")
    args = parser.parse_args()
    *differences, count = report(args.old, args.new)
    print("\n".join([*differences, count]))
    sys.exit(bool(differences))


if __name__ == "__main__":
    command.run(main)
