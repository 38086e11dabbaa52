"""Lines of text files, also packed ones: a line ends at the byte 0x0A and nowhere else.

`str.splitlines`, text mode and `codecs` also split at U+2028, U+0085, a form feed or a lone
carriage return, so that sentence numbers would depend on the reader.
"""

import bz2
import codecs
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from headcount.base.errors import UserError
from headcount.base.files import whole_file

OPENERS = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open a packed file, by the end of its name."""

_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, OSError)


def named(path: Path, member: str | None, shown: str = "") -> str:
    """Return the name of a text for messages: its file (`shown`, or else the path) and member."""
    return f"{shown or path} ({member})" if member else shown or str(path)


@contextmanager
def unpacked(path: Path, member: str | None, shown: str = "") -> Iterator[BinaryIO]:
    """Open the unpacked bytes of a file, or of a member (packed itself or not) of a tar or zip.

    Raises UserError for a damaged or unsuitable archive, sometimes only at its end, so use nothing
    before the block has ended.
    """
    opened = _zip_member if path.suffix.lower() == ".zip" else _plain_or_tar_member
    try:
        with ExitStack() as stack:
            stream = stack.enter_context(opened(path, member, shown or str(path)))
            if member is not None and (opener := OPENERS.get(Path(member).suffix.lower())):
                stream = stack.enter_context(opener(stream))
            yield stream
    except _DAMAGE as fault:
        # Readers of packed files report damage without an error number; disks have one.
        if getattr(fault, "errno", None) is not None:
            raise
        raise UserError(
            f"{named(path, member, shown)}: damaged, cut short, or not of the kind that its name "
            f"says ({fault or type(fault).__name__}); get the file again"
        ) from None


@contextmanager
def _plain_or_tar_member(path: Path, member: str | None, shown: str) -> Iterator[BinaryIO]:
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as stream:
        if member is None:
            yield stream
            return
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for info in archive:
                if info.name.removeprefix("./") == member:  # some packers begin all names so
                    break
            else:
                raise _missing(member, shown, archive.getnames())
            _check_member(member, shown, info.type in (tarfile.REGTYPE, tarfile.AREGTYPE))
            yield archive.extractfile(info)
            names = [name.removeprefix("./") for name in archive.getnames()]
            _check_member(member, shown, several=names.count(member) > 1)
        while stream.read(2**20):  # the checksum of a packed file stands at its end
            pass


@contextmanager
def _zip_member(path: Path, member: str | None, shown: str) -> Iterator[BinaryIO]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if member not in names:
            raise _missing(str(member), shown, names)
        info = archive.getinfo(member)
        kind = stat.S_IFMT(info.external_attr >> 16)  # zero where the system that packed has none
        regular = not info.is_dir() and kind in (0, stat.S_IFREG)
        _check_member(member, shown, regular, names.count(member) > 1)
        try:
            file = archive.open(info)
        except (NotImplementedError, RuntimeError) as fault:  # a rare method; a password
            raise UserError(f"{shown} ({member}): cannot be unpacked: {fault}") from None
        with file:
            yield io.BufferedReader(file)  # its lines are read several times as fast


def _missing(member: str, shown: str, names: Iterable[str]) -> UserError:
    first, *more = [name[:100] for name in names] or ["no member"]
    listed = ", ".join([first, *more[:9]]) + (", …" if more[9:] else "")
    return UserError(f"{shown}: expected a member {member}, found {listed}")


def _check_member(member: str, shown: str, regular: bool = True, several: bool = False) -> None:
    """Raise UserError for a link, a folder or a device, and for a name that occurs twice."""
    if not regular:
        raise UserError(f"{shown}: expected {member} to be a plain file, found a link or device")
    if several:
        raise UserError(f"{shown}: has more than one {member}; pack it anew")


LONGEST_LINE = 16 * 2**20
"""Limit of a line in bytes, so that memory stays bounded."""


@dataclass
class LineTally:
    """Counts of one side: lines, and the times that a rule was applied."""

    lines: int = 0
    bom: int = 0
    crlf: int = 0
    no_final_newline: int = 0
    line_breaks: int = 0
    controls: int = 0
    invisible: int = 0
    """Invisible characters, which stay: zero-width spaces, word joiners, soft hyphens."""
    spaced: int = 0
    """Lines with a space before a comma or full stop, as tokenised text has."""
    ambiguous: int = 0
    """Units of a TMX file with several sentences in the language, which are left empty."""
    testsuites: int = 0
    """Documents of WMT's test suites, which are left out."""
    tags: dict[str, int] = field(default_factory=dict)
    """Sentences of a TMX file by their language tag."""


def read_lines(path: Path, member: str | None, tally: LineTally, shown: str = "") -> Iterator[str]:
    """Yield the lines of a raw text, packed or not, without line ends. `tally` counts oddities.

    Messages call the file `shown`, by default its path. Raises UserError, with line and byte
    offset, for bytes that are not UTF-8 and for NUL, and as `unpacked`.
    """
    with unpacked(path, member, shown) as stream:
        raws = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
        yield from _lines(raws, named(path, member, shown), tally)


def arriving_lines(stream: BinaryIO, shown: str, tally: LineTally) -> Iterator[list[str]]:
    """Yield lists of the lines that arrived together in a stream, by the rule of `read_lines`.

    A line is yielded as soon as its end arrives, so that a writer who waits for an answer gets it.
    """
    waiting: deque[bytes] = deque()
    lines = _lines(iter(lambda: waiting.popleft(), None), shown, tally)
    rest = b""
    while arrived := stream.read1(2**18):
        *whole, rest = (rest + arrived).split(b"\n")
        waiting.extend(line + b"\n" for line in whole)
        if len(rest) > LONGEST_LINE:  # refused below, instead of growing until it ends
            waiting.append(rest)
        if waiting:
            yield list(islice(lines, len(waiting)))
    if rest:
        waiting.append(rest)
        yield list(islice(lines, 1))


def clean_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text that this project wrote: UTF-8, each ended by a line feed."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def references(line: str) -> list[str]:
    """Return the translations in a line of a `.tgt`, separated by tabs. Cleaned text has no tab."""
    return line.split("\t")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by a line feed, whole or not at all."""
    with whole_file(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _lines(raws: Iterator[bytes], name: str, tally: LineTally) -> Iterator[str]:
    offset = 0
    for number, raw in enumerate(raws, start=1):
        where = f"{name}:{number}"
        if number == 1 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UserError(
                f"{where}: byte offset 0: expected UTF-8, found the byte order mark of UTF-16; use "
                "iconv"
            )
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            tally.bom, offset = tally.bom + 1, len(codecs.BOM_UTF8)
            raw = raw[offset:]
        if not raw:
            return
        if len(raw) > LONGEST_LINE:
            raise UserError(f"{where}: line longer than {LONGEST_LINE} bytes; is this a text?")
        tally.lines += 1
        yield _decoded(raw, where, offset, tally)
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
            f"0x{body[fault.start]:02X} ({fault.reason}); mend the line or use iconv"
        ) from None
