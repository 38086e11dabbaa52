"""`corpora.lock.yaml`: checksums of published files without one, recorded at the first fetch."""

import fcntl
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from headcount.base.errors import UserError
from headcount.base.files import write_text
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import SHA256, Section

LOCK = Path("config/corpora.lock.yaml")

_HEAD = """\
# What published files without a checksum in corpora.yaml were when they were fetched first. Later
# fetches must match. Written by scripts/download.py; commit it.
"""


class Recorded(Section):
    """A file at its first fetch."""

    sha256: Annotated[str, Field(pattern=SHA256)]
    bytes: int
    date: str


class _Lock(RootModel[dict[str, Recorded]]):
    model_config = ConfigDict(frozen=True, strict=True)


def read_lock(lock: Path) -> dict[str, Recorded]:
    """Return the recorded files by address, none without a lock file. Raises UserError."""
    return read_settings(lock, _Lock).root if lock.exists() else {}


def record(lock: Path, address: str, sha256: str, size: int) -> None:
    """Record a file at its first fetch. Several jobs may do so at once.

    Raises UserError if another job has recorded another content meanwhile.
    """
    lock.absolute().parent.mkdir(parents=True, exist_ok=True)
    with lock.with_name(".headcount.lock").open("a") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        known = read_lock(lock)
        mine = Recorded(sha256=sha256, bytes=size, date=f"{datetime.now(UTC):%Y-%m-%d}")
        theirs = known.setdefault(address, mine)
        if theirs.sha256 != sha256:
            raise UserError(
                f"{address}: fetched twice at once, with different content: SHA-256 {sha256} and "
                f"{theirs.sha256}; run it again"
            )
        rows = (
            f"\n{url}:\n  sha256: '{file.sha256}'\n  bytes: {file.bytes}\n  date: '{file.date}'\n"
            for url, file in sorted(known.items())
        )
        write_text(lock, _HEAD + "".join(rows))
