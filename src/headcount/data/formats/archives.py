"""Packed files and members of archives, read as streams. Nothing is unpacked to disk."""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from headcount.base.errors import UserError

OPENERS = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open a packed file, by the end of its name."""

_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, OSError)


def named(path: Path, member: str | None, shown: str = "") -> str:
    """Return the name of a text for messages: its file (`shown`, or else the path) and member."""
    return f"{shown or path} ({member})" if member else shown or str(path)


@contextmanager
def unpacked(path: Path, member: str | None, shown: str = "") -> Iterator[BinaryIO]:
    """Open the unpacked bytes of a file, or of a member of a .tar, .tgz, .tar.gz or .zip.

    A member may be packed itself. Messages call the file `shown`. Raises UserError for a damaged,
    cut or unsuitable archive, sometimes only at its end, so use nothing before the block has ended.
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
            info = _find(archive, member, shown)
            _check_member(member, shown, info.type in (tarfile.REGTYPE, tarfile.AREGTYPE))
            yield archive.extractfile(info)
            again = sum(_plain(other.name) == member for other in archive) > 1
            _check_member(member, shown, several=again)
        while stream.read(2**20):  # the checksum of a packed file stands at its end
            pass


def _find(archive: tarfile.TarFile, member: str, shown: str) -> tarfile.TarInfo:
    seen = []
    for info in archive:
        if _plain(info.name) == member:
            return info
        seen.append(info.name)
    raise _missing(member, shown, seen)


def _plain(name: str) -> str:
    """Return the name of a member without the `./` with which some packers begin all names."""
    return name.removeprefix("./")


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
