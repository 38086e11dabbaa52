"""Lines of text files, by one rule for all: a line ends at the byte 0x0A and nowhere else.

`str.splitlines`, text mode and `codecs` also split at U+2028, U+0085, a form feed or a lone
carriage return, so sentence numbers would depend on who reads. None of them is used here.
"""

import bz2
import codecs
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import BinaryIO

from headcount.base.errors import UserError
from headcount.base.files import whole_file

OPENERS = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""How to open a packed file, by the end of its name."""

LONGEST_LINE = 16 * 2**20
"""Bytes; a longer line is refused, so that memory stays bounded."""
LARGEST_TEXT = 32 * 2**30
"""Bytes a packed file may unpack to."""
HIGHEST_RATIO = 1000
"""Unpacked bytes per packed byte, checked from the first unpacked MiB on."""


@dataclass
class LineTally:
    """What was met while reading one side: lines, and how often a rule had to be applied."""

    lines: int = 0
    bom: int = 0
    crlf: int = 0
    no_final_newline: int = 0
    line_breaks: int = 0
    controls: int = 0


def read_lines(path: Path, member: str | None, tally: LineTally, shown: str = "") -> Iterator[str]:
    """Lines of a raw text, without line ends, straight from a packed file if it is one.

    `shown` is what messages call the file, its path unless another is given.

    A byte order mark, one carriage return before each line end and a missing last line end are
    accepted and counted in `tally`. Raises UserError, naming line and byte offset, for anything
    but UTF-8, for NUL bytes, and for a damaged, cut, overblown or unsuitable archive. Damage
    can show as late as at the end: use nothing before the iterator has ended.
    """
    shown = shown or str(path)
    name = f"{shown} ({member})" if member else shown
    try:
        with _opened(path, member, shown) as stream:
            yield from _lines(stream, name, tally)
    except (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, OSError) as fault:
        # Readers of packed files report damage without an error number; disks have one.
        if getattr(fault, "errno", None) is not None:
            raise
        raise UserError(
            f"{name}: damaged, cut short, or not what its name says, after {tally.lines} good "
            f"lines ({fault or type(fault).__name__}); get the file again"
        ) from None


def clean_lines(path: Path) -> Iterator[str]:
    """Lines of a text that this project wrote: UTF-8, each ended by a line feed."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by a line feed, whole or not at all."""
    with whole_file(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _lines(stream: BinaryIO, name: str, tally: LineTally) -> Iterator[str]:
    offset = 0
    for number in count(1):
        raw = stream.readline(LONGEST_LINE + 1)
        if number == 1:
            if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise UserError(
                    f"{name}:1: byte offset 0: expected UTF-8, found the byte order mark of "
                    "UTF-16; convert it with iconv -f UTF-16 -t UTF-8"
                )
            if raw.startswith(codecs.BOM_UTF8):
                tally.bom, offset = 1, len(codecs.BOM_UTF8)
                raw = raw[offset:]
        if not raw:
            return
        if len(raw) > LONGEST_LINE:
            raise UserError(
                f"{name}:{number}: line longer than {LONGEST_LINE} bytes; is this a text with "
                "one sentence a line?"
            )
        tally.lines = number
        yield _decoded(raw, f"{name}:{number}", offset, tally)
        offset += len(raw)


def _decoded(raw: bytes, where: str, offset: int, tally: LineTally) -> str:
    body = raw.removesuffix(b"\n")
    tally.no_final_newline += len(body) == len(raw)
    if body.endswith(b"\r"):
        tally.crlf += 1
        body = body[:-1]
    if b"\0" in body:
        raise UserError(
            f"{where}: byte offset {offset + body.index(0)}: expected text, found a NUL byte; "
            "this is UTF-16, a binary file or a damaged one"
        )
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise UserError(
            f"{where}: byte offset {offset + fault.start}: expected UTF-8, found the byte "
            f"0x{body[fault.start]:02X} ({fault.reason}); mend the line, or convert the file "
            "with iconv if it is in another encoding"
        ) from None


@contextmanager
def _opened(path: Path, member: str | None, shown: str) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file, or of one member of a tar archive read as a stream."""
    opener = OPENERS.get(path.suffix.lower(), open)
    with opener(path, "rb") as packed:
        stream = io.BufferedReader(_Bounded(packed, path.stat().st_size, shown))
        if member is None:
            yield stream
            return
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            yield _member(archive, member, shown)
            if sum(info.name == member for info in archive) > 1:
                raise UserError(f"{shown}: holds more than one {member}; pack it anew")
        while stream.read(2**20):  # the checksum of a packed file stands at its end
            pass


def _member(archive: tarfile.TarFile, member: str, shown: str) -> BinaryIO:
    """Bytes of a member by name. Nothing is ever unpacked to disk, so no name can escape."""
    seen = []
    for info in archive:
        if info.name != member:
            seen.append(info.name)
            continue
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise UserError(
                f"{shown}: expected {member} to be a plain file, found a link or device"
            )
        return archive.extractfile(info)
    listed = ", ".join(name[:100] for name in seen[:10]) + (", …" if len(seen) > 10 else "")
    raise UserError(f"{shown}: expected a member {member}, found {listed or 'no member'}")


class _Bounded(io.RawIOBase):
    """Unpacked bytes of a file; refuses to give far more than a text so packed could hold."""

    def __init__(self, unpacked: BinaryIO, packed_bytes: int, shown: str):
        self._unpacked = unpacked
        self._packed_bytes = packed_bytes
        self._shown = shown
        self._total = 0
        self._limit = min(LARGEST_TEXT, max(2**20, HIGHEST_RATIO * packed_bytes))

    def readable(self) -> bool:
        """True: this stream is for reading."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Read into the buffer and return the number of bytes, 0 at the end."""
        found = self._unpacked.readinto(buffer)
        self._total += found
        if self._total > self._limit:
            raise UserError(
                f"{self._shown}: unpacks to more than {self._limit} bytes from "
                f"{self._packed_bytes}; refused as a decompression bomb"
            )
        return found
