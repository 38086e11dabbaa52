"""Files that are either whole or absent: written aside, flushed to disk, renamed."""

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Path to write to; becomes `path` in one rename when the block ends, vanishes if it raises.

    What a killed writer left behind has the same name, so the next one takes its place.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part-{path.name}")
    part.unlink(missing_ok=True)
    try:
        yield part
        flush_to_disk(part)
        os.replace(part, path)
        flush_to_disk(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends, whole or not at all."""
    with whole_file(path) as part:
        part.write_bytes(text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON, whole or not at all; NaN and infinities are refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a header and rows, whole or not at all; floats keep all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_text(path, text.getvalue())


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def sha256(path: Path) -> str:
    """Hex SHA-256 of the file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_to_disk(path: Path) -> None:
    """Ask the kernel to put a file's, or a folder's, contents on the disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
