"""List the weights, texts and tables that differ between two folders of results.

    python workflow/compare.py ../other/results/quickstart results/quickstart

Columns of times and memory are left out. Exit code 1 if a file differs, is missing or is new; 2 if
there is nothing to compare.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from headcount.base import command
from headcount.base.errors import UserError

ENDINGS = {".safetensors", ".txt", ".csv"}
"""Files that are compared; others record how these were made, or show them."""
MEASURED = {"seconds", "longest_seconds", "cpu_seconds", "memory_mb", "tokens_per_s"}
MEASURED |= {"milliseconds", "speedup"}
"""Columns of any table that are left out."""
OF_SPEED = {"mean", "sd", "low", "high"}
"""Columns of a table of speed that are left out."""
NO_RESULTS = {"logs", "state", "benchmarks"}


def compared(folder: Path) -> set[Path]:
    """Return the files to compare, by their paths in the folder. Raise UserError if none is."""
    paths = {path.relative_to(folder) for path in folder.rglob("*") if path.suffix in ENDINGS}
    paths = {path for path in paths if not NO_RESULTS & set(path.parts)}
    if not paths:
        raise UserError(f"{folder}: expected results of an experiment, found none; name another")
    return paths


def same(one: Path, other: Path) -> bool:
    """Return whether two files have the same bytes, in a table except in measured columns."""
    if one.read_bytes() == other.read_bytes():
        return True
    try:
        return one.suffix == ".csv" and _cells(one).equals(_cells(other))
    except ValueError:
        return False


def _cells(path: Path) -> pd.DataFrame:
    """Return a table's cells as text, without measured columns."""
    left_out = MEASURED | (OF_SPEED if path.stem.endswith(("speed", "speedup")) else set())
    cells = pd.read_csv(path, dtype=str, keep_default_na=False)
    return cells.drop(columns=left_out, errors="ignore")


def report(old: Path, new: Path) -> Iterator[str]:
    """Yield a line for every file that is missing or differs, then the number of files in both."""
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
    """Print the differences, and the number of files that were compared."""
    parser = command.parser(__doc__)
    parser.add_argument("old", type=Path, help="results of an experiment, such as results/tiny")
    parser.add_argument("new", type=Path, help="the same, made another time or elsewhere")
    args = parser.parse_args()
    *differences, count = report(args.old, args.new)
    print("\n".join([*differences, count]))
    sys.exit(bool(differences))


if __name__ == "__main__":
    command.run(main)
