"""`corpora.lock.yaml`: what each published file was when it was fetched first, if nobody said."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from headcount.base.errors import UserError
from headcount.base.files import write_text
from headcount.base.settings.names import SHA256
from headcount.base.settings.reading.reader import read_settings
from headcount.base.settings.section import Section

LOCK = Path("config/corpora.lock.yaml")

_HEAD = """\
# What published files without a checksum in corpora.yaml were when they were fetched first. Later
# fetches must match. Written by scripts/download.py; commit it.
"""


class Recorded(Section):
    """A file as it was fetched first."""

    sha256: Annotated[str, Field(pattern=SHA256)]
    bytes: int
    date: str


class _Lock(RootModel[dict[str, Recorded]]):
    model_config = ConfigDict(frozen=True, strict=True)


def read_lock(lock: Path) -> dict[str, Recorded]:
    """What is recorded, by address; nothing if there is no such file. Raises UserError."""
    return read_settings(lock, _Lock).root if lock.exists() else {}


def record(lock: Path, address: str, sha256: str, size: int) -> None:
    """Record a file that was fetched first. Several jobs may do so at once.

    Raises UserError if another job has recorded another content meanwhile.
    """
    with _held(lock.absolute().parent):
        known = read_lock(lock)
        mine = Recorded(sha256=sha256, bytes=size, date=f"{datetime.now(UTC):%Y-%m-%d}")
        theirs = known.get(address, mine)
        if theirs.sha256 != sha256:
            raise UserError(
                f"{address}: fetched twice at once, with different content: SHA-256 {sha256} and "
                f"{theirs.sha256}; run it again, and see which one comes"
            )
        rows = sorted((known | {address: theirs}).items())
        write_text(lock, _HEAD + "".join(_shown(*row) for row in rows))


def _shown(address: str, file: Recorded) -> str:
    return (
        f"\n{address}:\n  sha256: '{file.sha256}'\n  bytes: {file.bytes}\n  date: '{file.date}'\n"
    )


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Wait until no other process holds a folder; hold it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".headcount.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
