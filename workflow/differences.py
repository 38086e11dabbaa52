"""Where a file of results holds another value than the same file of another run of the same job."""

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compare import CLOCK, SPEED

PROVENANCE = "provenance"  # how a file was made: commands, code, packages
CHECKSUMS = "sha256"
WEIGHTS = ".weights"
"""Where files name the weights that they are of, by a checksum; maps of attention have numbers."""


class _Nothing:
    """In place of a value that one of two files lacks: null is a value."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def differences(path: str, kept: bytes, here: bytes, within: float) -> str:
    """How two versions of a file differ, in words; empty if they do not.

    What tells the time is left out, and what a file says of how it was made. `within`: by how much
    of the larger of the two a number may be off. Above 0, checksums are left out: weights that
    differ in one bit have others. A file that cannot be read as what its name says is one that
    differs.
    """
    if kept == here:
        return ""
    try:
        before, after = (dict(_values(path, content)) for content in (kept, here))
    except (ValueError, csv.Error) as fault:
        return f"{path}: differs, and the kept one or that here cannot be read ({fault})"
    both = {
        place: (before.get(place, _NOTHING), after.get(place, _NOTHING))
        for place in {**before, **after}
    }
    read = _number if Path(path).suffix == ".csv" else lambda value: value
    apart = {
        place: by
        for place, pair in both.items()
        if (by := _apart(*map(read, pair))) > within
        and not (within and _are_checksums(place, *pair))
    }
    if not apart:
        return ""
    largest, first = max(apart.values()), next(iter(apart))
    by = f", by up to {largest:.2g} of a value" if math.isfinite(largest) else ""
    return (
        f"{path}: {len(apart)} of {len(before)} values differ{by}; {first}: kept "
        f"{both[first][0]!r}, here {both[first][1]!r}"
    )


def _are_checksums(place: str, *values: Any) -> bool:
    """Whether both values are checksums; one that a file lacks is none."""
    named = CHECKSUMS in place or place.endswith(WEIGHTS)
    return named and all(isinstance(value, str) for value in values)


def _apart(one: Any, other: Any) -> float:
    """By how much of the larger two numbers differ; infinite for what is no number."""
    numbers = all(isinstance(each, int | float) for each in (one, other))
    if isinstance(one, bool) or isinstance(other, bool) or not numbers:
        return 0 if type(one) is type(other) and one == other else math.inf
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0
    size = max(abs(one), abs(other))
    return abs(one - other) / size if math.isfinite(size) else math.inf


def _values(path: str, content: bytes) -> Iterator[tuple[str, Any]]:
    """Every value of a file, with its place in words; of a table the text of its cells.

    Raises ValueError or csv.Error for what is not as the name says.
    """
    name, text = Path(path), content.decode("utf-8")
    if name.suffix == ".csv":
        clock = {*CLOCK, *(SPEED if name.stem.endswith(("speed", "speedup")) else [])}
        for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=1):
            yield from ((f"row {number}, {c}", v) for c, v in row.items() if c not in clock)
    elif name.suffix == ".json":
        yield from _leaves(json.loads(text), "")
    else:
        for number, line in enumerate(text.split("\n"), start=1):
            whole = (
                [("", line)] if name.suffix == ".txt" or not line else _leaves(json.loads(line), "")
            )
            yield from ((f"line {number}{place}", value) for place, value in whole)


def _number(cell: Any) -> Any:
    """A cell's number; the cell where it is none."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return cell


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Numbers and words in a JSON value, each with its place as `.scores.0.score`.

    What is empty is a value of its own.
    """
    if not isinstance(value, dict | list) or not value:
        yield place, value
        return
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        if key not in (PROVENANCE, *CLOCK):
            yield from _leaves(each, f"{place}.{key}")
