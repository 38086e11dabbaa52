"""Lines of text files, also packed ones: a line ends at the byte 0x0A and nowhere else.

`str.splitlines`, text mode and `codecs` also split at U+2028, U+0085, a form feed or a lone
carriage return, so that sentence numbers would depend on the reader.
"""

import bz2
import codecs
import errno
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import whole_file

OPENERS = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open a packed file, by the end of its name."""

_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, OSError)
_UNREAD = (ValueError, ArithmeticError, RuntimeError, struct.error, LookupError)
"""Faults that the readers of archives raise for entries that no packer writes."""
_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, *tarfile.GNU_TYPES[:2])
_MOST_MEMBERS = 10**5  # of a .tar: its reader keeps them all in memory


class FoundText(NamedTuple):
    """A raw file or its member, its name in messages, and the way to read its sentences."""

    path: Path
    member: str | None = None
    own: str = ""
    """The file's name in messages, if that is not its path."""
    format: str = "plain"
    column: int | str = 1
    separator: str = ""
    translator: str | None = None
    language: str = ""

    @property
    def shown(self) -> str:
        """Name of the file in messages."""
        return self.own or str(self.path)

    @property
    def name(self) -> str:
        """Name of the text in messages, with that of the member."""
        return f"{self.shown} ({self.member})" if self.member else self.shown

    def lines(self) -> Iterator[str]:
        """Yield the raw lines, without line ends."""
        with self.opened() as stream:
            raws = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
            yield from _lines(raws, self.name)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the unpacked bytes of the file or of the member, which may be packed itself.

        Damage may be raised only at its end, so use nothing before the block has ended.
        """
        is_zip = self.path.suffix.lower() == ".zip"
        try:
            with ExitStack() as stack:
                opener = open if is_zip else OPENERS.get(self.path.suffix.lower(), open)
                stream = stack.enter_context(opener(self.path, "rb"))
                if self.member is not None:
                    find = _in_zip if is_zip else _in_tar
                    stream = stack.enter_context(_found(find, stream, self.member, self.shown))
                    if opener := OPENERS.get(Path(self.member).suffix.lower()):
                        stream = stack.enter_context(opener(stream))
                yield stream
        except _DAMAGE as fault:
            # Readers of packed files report damage without an error number; disks have one.
            if getattr(fault, "errno", None) not in (None, errno.EINVAL):  # a place before 0
                raise
            raise UserError(
                f"{self.name}: damaged, cut short, or not of the kind that its name says "
                f"({fault or type(fault).__name__}); get the file again"
            ) from None


def _found(
    find: Callable[[BinaryIO, str, str], BinaryIO], stream: BinaryIO, member: str, shown: str
) -> BinaryIO:
    """Return the member that `find` opens. Raises EOFError for an entry that cannot be read."""
    try:
        return find(stream, member, shown)
    except _UNREAD as fault:
        raise EOFError(f"an entry that cannot be read: {fault!r}"[:200]) from None


class _Entry(tarfile.TarInfo):
    """An entry of an archive, whose long names are short enough for memory."""

    @classmethod
    def frombuf(cls, *block: Any) -> tarfile.TarInfo:
        entry = super().frombuf(*block)
        if entry.type in _HEADERS and not 0 <= entry.size <= LONGEST_LINE:
            raise tarfile.ReadError(f"a header of {entry.size} bytes")
        return entry


def _in_tar(stream: BinaryIO, member: str, shown: str) -> BinaryIO:
    archive = tarfile.TarFile(fileobj=stream, tarinfo=_Entry)
    infos = []
    for info in archive:
        if info.size < 0:
            raise tarfile.ReadError(f"{info.name[:100]} has a negative size")
        if len(infos) == _MOST_MEMBERS:
            raise tarfile.ReadError(f"more than {_MOST_MEMBERS} members")
        infos.append(info)
    while stream.read(2**20):  # the checksum of a packed file stands at its end
        pass
    # Some packers begin all names with ./
    _check_member(member, shown, [info.name.removeprefix("./") for info in infos])
    info = next(info for info in infos if info.name.removeprefix("./") == member)
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise _irregular(member, shown)
    return archive.extractfile(info)


def _in_zip(stream: BinaryIO, member: str, shown: str) -> BinaryIO:
    archive = zipfile.ZipFile(stream)
    _check_member(member, shown, archive.namelist())
    info = archive.getinfo(member)
    kind = stat.S_IFMT(info.external_attr >> 16)  # zero where the system that packed has none
    if info.is_dir() or kind not in (0, stat.S_IFREG):
        raise _irregular(member, shown)
    try:
        return io.BufferedReader(archive.open(info))  # its lines are read several times as fast
    except (NotImplementedError, RuntimeError) as fault:  # a rare method; a password
        raise UserError(f"{shown} ({member}): cannot be unpacked: {fault}") from None


def _check_member(member: str, shown: str, names: list[str]) -> None:
    if names.count(member) > 1:
        raise UserError(f"{shown}: has more than one {member}; pack it anew")
    if member not in names:
        listed = ", ".join(name[:100] for name in names[:10]) + ", …" * (len(names) > 10)
        raise UserError(f"{shown}: expected a member {member}, found {listed or 'no member'}")


def _irregular(member: str, shown: str) -> UserError:
    return UserError(f"{shown}: expected {member} to be a plain file, found a link or device")


LONGEST_LINE = 16 * 2**20
"""Limit of a line in bytes, so that memory stays bounded."""


def arriving_lines(stream: BinaryIO, shown: str) -> Iterator[list[str]]:
    """Yield lists of the lines that arrived together in a stream, as soon as their ends arrive."""
    waiting: deque[bytes] = deque()
    lines = _lines(iter(waiting.popleft, None), shown)
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


def _lines(raws: Iterator[bytes], name: str) -> Iterator[str]:
    offset = 0
    for number, raw in enumerate(raws, start=1):
        where = f"{name}:{number}"
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            offset = len(codecs.BOM_UTF8)
            raw = raw[offset:]
        if not raw:
            return
        if len(raw) > LONGEST_LINE:
            raise UserError(f"{where}: line longer than {LONGEST_LINE} bytes; is this a text?")
        try:
            line = raw.decode("utf-8")
            if "\0" in line:
                at = raw.index(0)
                raise UnicodeDecodeError("utf-8", raw, at, at + 1, "NUL, as in UTF-16 or damage")
        except UnicodeDecodeError as fault:
            raise UserError(
                f"{where}: byte offset {offset + fault.start}: expected UTF-8, found the byte "
                f"0x{raw[fault.start]:02X} ({fault.reason}); mend the line or use iconv"
            ) from None
        yield line.removesuffix("\n").removesuffix("\r")
        offset += len(raw)
