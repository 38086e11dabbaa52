"""Files that are complete or absent: written aside, flushed, renamed. And locks."""

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from headcount.base.errors import EnvironmentFault, UserError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # errors that name no file


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to. It becomes `path` when the block ends, and is deleted if it raises.

    Raises OSError that names `path`. The rest of a killed writer has the same name and is replaced.
    """
    part = path.with_name(f".part-{path.name}")
    with naming(path, part):
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
    """Yield a folder to write into. It replaces `path` when the block ends. As `whole_file`."""
    part = path.with_name(f".part-new-{path.name}")
    with naming(path, part):
        remove_folder(part)
        part.mkdir(parents=True)
        try:
            yield part
            aside = _emptied_aside(path)
            if path.exists():
                path.rename(aside)
            try:
                part.rename(path)
            except BaseException:
                if aside.exists():
                    aside.rename(path)  # nothing is lost
                raise
        except BaseException:
            remove_folder(part)
            raise
        flush_to_disk(path.parent)
        shutil.rmtree(aside, ignore_errors=True)


def check_replaceable(folder: Path, what: str, known: Iterable[str]) -> None:
    """Raise UserError for a link, a file, or a folder with other files than `known`."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder}: expected a folder, not a link or a file; name another folder")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if others := sorted(names - set(known)):
        raise UserError(
            f"{folder}: expected no folder, an empty one or {what} alone, found other files: "
            f"{', '.join(others[:5])}; move them, or name another folder"
        )


def check_apart(out: Path, inputs: Iterable[Path]) -> None:
    """Raise UserError if a folder to write is an input, or lies in one or around one."""
    place = out.resolve()
    for path in inputs:
        other = path.resolve()
        if place == other or place in other.parents or other in place.parents:
            raise UserError(
                f"{out}: expected a folder apart from all inputs; it is, holds or lies in {path}, "
                "which could be lost; name another folder"
            )


@contextmanager
def naming(path: Path, part: Path | None = None) -> Iterator[None]:
    """Name `path`, and not its `part`, in errors of the system."""
    try:
        yield
    except OSError as fault:
        unnamed = fault.filename is None and fault.errno in _NO_ROOM
        if unnamed or fault.filename == str(part):
            fault.filename = str(path)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, all or none."""
    with whole_file(path) as part:
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends, all or none."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON, all or none. NaN and infinities are refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a header and rows of as many values, all or none. Floats keep all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{path}: expected {len(columns)} values, found {len(row)}")
        writer.writerow(row)
    write_text(path, text.getvalue())


def write_result(
    out: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], facts: dict[str, Any]
) -> None:
    """Write rows as CSV, and beside it a JSON of the same name with `facts`."""
    write_csv(out, columns, rows)
    write_json(out.with_suffix(".json"), facts)


def fill_page(template: Path, values: Mapping[str, Any]) -> str:
    """Return the filled template. A name without a value is a fault. HTML values are escaped."""
    import jinja2  # here, as few commands make pages

    environment = jinja2.Environment(
        autoescape=template.suffix == ".html",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.from_string(template.read_text(encoding="utf-8")).render(values)
    return page.rstrip("\n") + "\n"


def read_csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield `<path>:<line>` and the cells of every row. Raise UserError for other columns."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        try:
            if rows.fieldnames != list(columns):
                raise UserError(
                    f"{path}:1: expected the columns {', '.join(columns)}; make it again"
                )
            for row in rows:
                yield f"{path}:{rows.line_num}", row
        except (csv.Error, UnicodeDecodeError) as fault:
            raise UserError(f"{path}: damaged, no CSV in UTF-8 ({fault}); make it again") from None


def read_json(path: Path) -> Any:
    """Return the value in a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def sha256(*paths: Path) -> str:
    """Return the hex SHA-256 of the bytes of all files, one after another."""
    whole = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: whole)
    return whole.hexdigest()


def remove_folder(folder: Path) -> None:
    """Remove a folder if it exists. No part of it ever has its name."""
    aside = _emptied_aside(folder)
    if folder.exists():
        folder.rename(aside)
        shutil.rmtree(aside)


def _emptied_aside(folder: Path) -> Path:
    """Return the name of a folder that waits for its deletion. What a killed remover left goes."""
    aside = folder.with_name(f".part-{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return aside


def flush_to_disk(path: Path) -> None:
    """Wait until the kernel has written a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def hold(path: Path, doing: str, wait: bool = False) -> TextIO:
    """Return an open file whose lock is held until it is closed or this process ends.

    `doing` describes the holder. Another holder is waited for with `wait`, else EnvironmentFault.
    """
    while True:
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+")
        _lock(file, doing, wait)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                break
        file.close()  # its last holder removed it meanwhile, and others would lock a new one
    with naming(path):
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
    return file


def _lock(file: TextIO, doing: str, wait: bool) -> None:
    # Not filelock: it names no holder, and where flock fails its lock outlives a killed process.
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as fault:
        file.seek(0)
        holder = f"process {file.read().strip() or 'unknown'} is {doing}"
        if not wait:
            file.close()
            raise EnvironmentFault(f"{holder}; wait until it ends, or stop it") from fault
        print(f"{holder}; this one goes on when it has ended", file=sys.stderr, flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)
