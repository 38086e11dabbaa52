"""Packed files and members of archives, read as streams: nothing is ever unpacked to disk."""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from headcount.base.errors import UserError

OPENERS = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""How to open a packed file, by the end of its name."""

LARGEST_TEXT = 32 * 2**30
"""Bytes a packed file may unpack to."""
HIGHEST_RATIO = 1000
"""Unpacked bytes per packed byte, checked from the first unpacked MiB on."""

_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, OSError)


def named(path: Path, member: str | None, shown: str = "") -> str:
    """What messages call a text: its file (`shown`, or else the path), and its name in there."""
    return f"{shown or path} ({member})" if member else shown or str(path)


@contextmanager
def unpacked(
    path: Path, member: str | None, shown: str = "", progress: Callable[[], str] = lambda: ""
) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file, or of a member of an archive (.tar, .tgz, .tar.gz, .zip).

    A member may be packed itself. `shown` is what messages call the file; `progress` says what was
    read, for those of damage. Raises UserError for a damaged, cut, overblown or unsuitable archive.
    Damage can show as late as at the end: use nothing before the block has ended.
    """
    shown = shown or str(path)
    try:
        with ExitStack() as stack:
            if path.suffix.lower() == ".zip":
                stream = stack.enter_context(_zipped(path, member, shown))
            else:
                stream = stack.enter_context(_tarred(path, member, shown))
            if member is not None and (opener := OPENERS.get(Path(member).suffix.lower())):
                stream = _Bounded(stack.enter_context(opener(stream)), path, shown).buffered()
            yield stream
    except _DAMAGE as fault:
        # Readers of packed files report damage without an error number; disks have one.
        if getattr(fault, "errno", None) is not None:
            raise
        raise UserError(
            f"{named(path, member, shown)}: damaged, cut short, or not what its name says, after "
            f"{progress() or 'a part'} ({fault or type(fault).__name__}); get the file again"
        ) from None


@contextmanager
def _tarred(path: Path, member: str | None, shown: str) -> Iterator[BinaryIO]:
    """Bytes of a file that may be packed, or of one member of a tar archive read as a stream."""
    with OPENERS.get(path.suffix.lower(), open)(path, "rb") as packed:
        stream = _Bounded(packed, path, shown).buffered()
        if member is None:
            yield stream
            return
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            yield _tar_member(archive, member, shown)
            if sum(_plain(info.name) == member for info in archive) > 1:
                raise _repeated(shown, member)
        while stream.read(2**20):  # the checksum of a packed file stands at its end
            pass


def _tar_member(archive: tarfile.TarFile, member: str, shown: str) -> BinaryIO:
    seen = []
    for info in archive:
        if _plain(info.name) != member:
            seen.append(info.name)
            continue
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise _no_file(shown, member)
        return archive.extractfile(info)
    raise _missing(shown, member, seen)


def _plain(name: str) -> str:
    """A member's name as people write it: some packers begin all of them with `./`."""
    return name.removeprefix("./")


@contextmanager
def _zipped(path: Path, member: str | None, shown: str) -> Iterator[BinaryIO]:
    """Bytes of one member of a .zip; its checksum is compared when the last of them is read."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if member not in names:
            raise _missing(shown, str(member), names)
        if names.count(member) > 1:
            raise _repeated(shown, member)
        info = archive.getinfo(member)
        kind = stat.S_IFMT(info.external_attr >> 16)  # zero where the system that packed has none
        if info.is_dir() or kind not in (0, stat.S_IFREG):
            raise _no_file(shown, member)
        try:
            file = archive.open(info)
        except (NotImplementedError, RuntimeError) as fault:  # a rare method; a password
            raise UserError(f"{shown} ({member}): cannot be unpacked: {fault}") from None
        with file:
            yield _Bounded(file, path, shown).buffered()


def _missing(shown: str, member: str, seen: Iterable[str]) -> UserError:
    names = list(seen)
    listed = ", ".join(name[:100] for name in names[:10]) + (", …" if len(names) > 10 else "")
    return UserError(f"{shown}: expected a member {member}, found {listed or 'no member'}")


def _repeated(shown: str, member: str) -> UserError:
    return UserError(f"{shown}: holds more than one {member}; pack it anew")


def _no_file(shown: str, member: str) -> UserError:
    return UserError(f"{shown}: expected {member} to be a plain file, found a link or device")


class _Bounded(io.RawIOBase):
    """Unpacked bytes of a file; refuses to give far more than a text so packed could hold."""

    def __init__(self, source: BinaryIO, path: Path, shown: str):
        self._source = source
        self._packed_bytes = path.stat().st_size
        self._shown = shown
        self._total = 0
        self._limit = min(LARGEST_TEXT, max(2**20, HIGHEST_RATIO * self._packed_bytes))

    def buffered(self) -> BinaryIO:
        """The same bytes, with `readline`."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """True: this stream is for reading."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Read into the buffer and return the number of bytes, 0 at the end."""
        found = self._source.readinto(buffer)
        self._total += found
        if self._total > self._limit:
            raise UserError(
                f"{self._shown}: unpacks to more than {self._limit} bytes from "
                f"{self._packed_bytes}; refused as a decompression bomb"
            )
        return found
