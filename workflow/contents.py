"""What each output held when its job ended, so that a file edited since is not taken for ours.

A file is read again only if its size, times or inode are no longer those noted beside its SHA-256;
nobody can set the time of the last change of an inode, so no edit hides behind `touch`.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from headcount.base.files import sha256
from headcount.base.fingerprint import digest

RECORDS = Path(".snakemake/contents")  # one file for each output, under its own path
OWN = Path(".snakemake/own_contents")  # of files of one's own
UNSEEN: list[int] = []  # in place of size and times: never seen here
FAILED = [0]  # the same: its job failed


def record(path: str) -> None:
    """Note what a file holds now. One that is gone was made, but its job has failed since.

    Snakemake records a failed job like any other: so its note is believed no more.
    """
    if os.path.isfile(path):
        stamp = _stamp(path)
        _write(path, sha256(Path(path)), stamp)
    elif known := recorded(path):
        _write(path, known, FAILED)


def take(path: str, checksum: str) -> bool:
    """Note a checksum if it is that of the file; returns whether it is."""
    if not os.path.isfile(path):
        return False
    stamp = _stamp(path)
    if content(path) != checksum:
        return False
    _write(path, checksum, stamp)
    return True


def expect(path: str, checksum: str) -> None:
    """Note what a file should hold that is not here, or is another one."""
    _write(path, checksum, UNSEEN)


def recorded(path: str) -> str | None:
    """SHA-256 of what the file's job wrote; None if nothing says so."""
    return _read(path).get("sha256")


def is_as_recorded(path: str) -> bool:
    """Whether a file that is there holds what its job wrote."""
    kept = _read(path)
    if not kept or kept["stamp"] == FAILED:
        return False
    return kept["stamp"] == _stamp(path) or take(path, kept["sha256"])  # touched, or back from DVC


def content(path: str) -> str:
    """SHA-256 of what a file holds now."""
    kept = _read(path)
    return kept["sha256"] if kept.get("stamp") == _stamp(path) else sha256(Path(path))


def own_content(path: str) -> str:
    """SHA-256 of a file that no job makes; it is read again only if it may have changed.

    The note lies apart from those of outputs, under a name made of the path.
    """
    note = OWN / f"{digest(os.path.abspath(path))}.json"
    try:
        kept = json.loads(note.read_bytes())
    except (FileNotFoundError, ValueError):
        kept = {}
    stamp = _stamp(path)
    if kept.get("stamp") != stamp:
        kept = {"sha256": sha256(Path(path)), "stamp": stamp}
        with suppress(OSError):  # a folder that cannot be written: only time is lost
            _put(note, kept)
    return kept["sha256"]


def all_recorded() -> Iterator[str]:
    """Every output of which something is noted, whether it is still there or not."""
    yield from (str(path.relative_to(RECORDS)) for path in RECORDS.rglob("*") if path.is_file())


def _stamp(path: str) -> list[int]:
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _read(path: str) -> dict[str, Any]:
    """What is noted of a file; nothing if there is no note, or one that a power cut left torn."""
    try:
        return json.loads((RECORDS / path).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}


def _write(path: str, checksum: str, stamp: list[int]) -> None:
    """In one rename, for dry runs read beside a run; without a wait for the disk, as Snakemake."""
    _put(RECORDS / path, {"sha256": checksum, "stamp": stamp})


def _put(note: Path, kept: dict[str, Any]) -> None:
    part = note.with_name(f".part-{os.getpid()}-{note.name}"[:255])
    note.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(kept))
    part.replace(note)
