"""Sums of the golden files, the copies that tests and pages read, and the comparison."""

import csv
import hashlib
import io
import math
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from tests.golden.frozen import ROOT, members
from tests.golden.renamed import rename

SUMS = Path(__file__).parent / "sums.csv"
COPIES = Path(__file__).parent / "copies.tar.xz"
TOLERANCE = 1e-9

Files = Mapping[str, bytes]


def read_copy(experiment: str) -> dict[str, bytes]:
    """Return the committed copies of an experiment's files by path; empty if there are none."""
    found = members(COPIES.read_bytes())
    return {name: content for name, content in found if name.startswith(f"{experiment}/")}


def write_golden(experiment: str, made: Files, copied: Collection[str]) -> None:
    """Replace the sums of an experiment's files, and the copies of those files in `copied`."""
    rows = read_sums() if SUMS.exists() else {}
    rows = {path: value for path, value in rows.items() if path.split("/")[0] != experiment}
    rows |= {path: _sum(content) for path, content in made.items()}
    lines = [f"{path},{value}\n" for path, value in sorted(rows.items())]
    SUMS.write_text("file,sha256\n" + "".join(lines))
    kept = dict(members(COPIES.read_bytes()))
    kept = {name: kept[name] for name in kept if not name.startswith(f"{experiment}/")}
    kept |= {name: made[name] for name in set(copied) & set(made)}
    write_archive(COPIES, dict(sorted(kept.items())))


def write_archive(path: Path, content: dict[str, bytes]) -> None:
    """Write files into a compressed tar archive; equal files give equal bytes."""
    with tarfile.open(path, mode="w:xz", preset=9) as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def read_sums() -> dict[str, str]:
    """Return the committed SHA-256 of every file, by path."""
    with SUMS.open(newline="") as file:
        return {row["file"]: row["sha256"] for row in csv.DictReader(file)}


def verdicts(
    experiment: str, made: Files, golden: Callable[[], Files]
) -> tuple[list[str], list[str]]:
    """Return a line for every file that differs, and one for every file equal within 1e-9.

    `golden` returns the golden content of files. It is called only if a sum differs.
    """
    sums = {p: value for p, value in read_sums().items() if p.split("/")[0] == experiment}
    faults = [f"{path}: no longer made" for path in sums if path not in made]
    faults += [f"{path}: new" for path in made if path not in sums]
    differing = [p for p, content in made.items() if p in sums and _sum(content) != sums[p]]
    old, notes = golden() if differing else {}, []
    for path in differing:
        cells = list(_cells(rename(path, old[path], ROOT), made[path]))
        (faults if cells else notes).append(f"{path}: {cells[0] if cells else _CLOSE}")
    return faults, notes


_CLOSE = f"equal within {TOLERANCE:g} relative, last digits differ"


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _cells(golden: bytes, made: bytes) -> Iterator[str]:
    """Yield the cells whose values differ by more than rounding."""
    old, new = ([*csv.reader(io.StringIO(text.decode()))] for text in (golden, made))
    if len(old) != len(new):
        yield f"{len(old)} rows became {len(new)}"
    for number, (before, after) in enumerate(zip(old, new, strict=False), start=1):
        if len(before) != len(after) or not all(map(_close, before, after)):
            yield f"row {number}: {','.join(before)} became {','.join(after)}"


def _close(old: str, new: str) -> bool:
    try:
        return old == new or math.isclose(float(old), float(new), rel_tol=TOLERANCE)
    except ValueError:
        return False
