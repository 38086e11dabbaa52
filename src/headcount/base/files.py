"""Files that are whole or absent: written aside, flushed, renamed; and those one process holds."""

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from headcount.base.errors import EnvironmentFault, UserError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class NoRoom(OSError):
    """A file does not fit on the disk, into a quota, or under a limit on its size."""


@contextmanager
def whole_file(path: Path, size: int | None = None) -> Iterator[Path]:
    """Path to write to; becomes `path` in one rename when the block ends, vanishes if it raises.

    What a killed writer left behind has the same name, so the next one takes its place. `size`:
    bytes to come, where that is known. Raises OSError that names `path`; if it is NoRoom, with the
    bytes that are needed and those that are free.
    """
    part = path.with_name(f".part-{path.name}")
    with naming(path, part, size):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        try:
            yield part
            flush_to_disk(part)
            os.replace(part, path)
            flush_to_disk(path.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Folder to write into; takes the place of `path` when the block ends, vanishes if it raises.

    Raises OSError as `whole_file` does.
    """
    part = path.with_name(f".part-new-{path.name}")
    with naming(path, part):
        remove_folder(part)
        part.mkdir(parents=True)
        try:
            yield part
            _take_place(part, path)
        except BaseException:
            remove_folder(part)
            raise


def _take_place(part: Path, path: Path) -> None:
    """Rename a folder; one that has its name already is deleted once the new one is there."""
    aside = _emptied_aside(path)
    if path.exists():
        path.rename(aside)
    try:
        part.rename(path)
    except BaseException:
        if aside.exists() and not path.exists():
            aside.rename(path)
        raise
    flush_to_disk(path.parent)
    shutil.rmtree(aside, ignore_errors=True)


def check_replaceable(folder: Path, what: str, known: Iterable[str]) -> None:
    """Raise UserError for a folder that has other files than `known`, the names in `what`.

    So `whole_folder` replaces only files that this project has written.
    """
    if folder.is_symlink():
        raise UserError(f"{folder}: expected a folder, found a link; name what it leads to")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: expected a folder, found a file; name another folder")
    found = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if others := sorted(found - set(known)):
        more = f" and {len(others) - 5} more" if others[5:] else ""
        raise UserError(
            f"{folder}: expected no folder, an empty one or {what} alone, found other files: "
            f"{', '.join(others[:5])}{more}; move them, or name another folder"
        )


def check_apart(out: Path, inputs: Iterable[Path]) -> None:
    """Raise UserError if a folder to write is an input, lies in one or holds one.

    Symbolic links are followed.
    """
    place = out.resolve()
    for path in inputs:
        found = path.resolve()
        if place == found or place in found.parents or found in place.parents:
            raise UserError(
                f"{out}: expected a folder apart from all inputs, found that it is, holds or lies "
                f"in the input {path}, which could be lost; name another folder"
            )


@contextmanager
def naming(path: Path, part: Path | None = None, size: int | None = None) -> Iterator[None]:
    """Context whose errors of the system name the file that was to be, and not the part of it.

    Raises NoRoom with the bytes that are needed (`size`, where known) and those that are free.
    """
    try:
        yield
    except NoRoom:  # another file, written while this one is open
        raise
    except OSError as fault:
        if fault.errno in _NO_ROOM:
            raise NoRoom(fault.errno, f"{fault.strerror}: {_room(path, size)}", str(path)) from None
        if fault.filename == str(part):
            fault.filename = str(path)
        raise


def _room(path: Path, size: int | None) -> str:
    """How many bytes a file needs, and how many are free where it was to be."""
    disk = os.statvfs(next(parent for parent in path.absolute().parents if parent.is_dir()))
    if disk.f_files and not disk.f_favail:
        return "no inode is free there, so it takes no more files, however small"
    free = disk.f_bavail * disk.f_frsize
    if size is None:
        return f"it needs more than the {free:,} bytes that are free there"
    return f"it needs {size:,} bytes and {free:,} are free there"


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, whole or not at all."""
    with whole_file(path, len(content)) as part:
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


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


def write_result(
    out: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], facts: dict[str, Any]
) -> None:
    """Write rows as CSV, and beside it a JSON of the same name with `facts`."""
    write_csv(out, columns, rows)
    write_json(out.with_suffix(".json"), facts)


def read_csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The place, `<path>:<line>`, and the cells by column of every row.

    Raises UserError unless the file has exactly these columns.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if (found := rows.fieldnames or []) != list(columns):
            raise UserError(
                f"{path}:1: expected the columns {', '.join(columns)}, found "
                f"{', '.join(found) or 'nothing'}; make it again"
            )
        for row in rows:
            yield f"{path}:{rows.line_num}", row


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def sha256(*paths: Path) -> str:
    """Hex SHA-256 of the file's bytes; of several files, of their bytes one after the other."""
    whole = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: whole)
    return whole.hexdigest()


def remove_folder(folder: Path) -> None:
    """Remove a folder, if it is there, so that half of it never lies under its name."""
    aside = _emptied_aside(folder)
    if folder.exists():
        folder.rename(aside)
        shutil.rmtree(aside)


def _emptied_aside(folder: Path) -> Path:
    """Where a folder goes before it is deleted; what a remover that was killed left there goes."""
    aside = folder.with_name(f".part-{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return aside


def flush_to_disk(path: Path) -> None:
    """Ask the kernel to put a file's, or a folder's, contents on the disk before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def hold(path: Path, doing: str, wait: bool = False) -> TextIO:
    """The open file whose lock is held until it is closed or this process ends, however it ends.

    The kernel drops the lock with its holder. `doing` says what a holder does, as in 'process 7 is
    training in x'. If another process, or another call in this one, has the lock, this one names
    the holder on standard error and waits for it with `wait`, and else raises EnvironmentFault.
    """
    while True:
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+")
        _take(file, doing, wait)
        if _lies_at(file, path):
            break
        file.close()  # its last holder has removed it meanwhile: others would take a new one
    with naming(path):
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
    return file


def _take(file: TextIO, doing: str, wait: bool) -> None:
    """Lock an open file, as `hold` does."""
    # Not filelock: it names no holder, and where flock fails its lock outlives a killed process.
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as fault:
        file.seek(0)
        told = f"process {file.read().strip() or 'unknown'} is {doing}"
        if not wait:
            file.close()
            raise EnvironmentFault(f"{told}; wait until it ends, or stop it") from fault
        print(f"{told}; this one goes on when it has ended", file=sys.stderr, flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)


def _lies_at(file: TextIO, path: Path) -> bool:
    """Whether an open file is still the one of that path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
