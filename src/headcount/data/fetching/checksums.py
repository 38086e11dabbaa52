"""`corpora.lock.yaml`, the checksums of first fetches, and the list of all files of corpora."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from headcount.base.errors import UserError
from headcount.base.files import write_text
from headcount.base.settings.names import SHA256
from headcount.base.settings.reading.reader import read_settings
from headcount.base.settings.section import Section
from headcount.base.settings.text.corpora import Corpus
from headcount.base.settings.text.sources import File
from headcount.data.fetching.transfer import MIRROR

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


def list_corpora(
    corpora: Mapping[str, Corpus], raw: Path, recorded: Mapping[str, Recorded]
) -> Iterator[str]:
    """Yield lines with licence, citation and files of each corpus, and the sum to fetch.

    `raw` is the folder of fetched corpora, `recorded` the content of `corpora.lock.yaml`.
    """
    to_fetch: dict[str, int] = {}
    for name, corpus in corpora.items():
        yield from (name, f"  licence: {corpus.licence}", f"  cite: {corpus.citation}")
        if corpus.generator:
            yield "  generated here"
        files = [(corpus.of or name, corpus.base_url, file) for file in corpus.files()]
        files += [(name, tree.base_url, tree) for tree in corpus.trees.values()]
        addresses = [file.path or file.url or f"{base}/{file.file}" for _, base, file in files]
        for address, (folder, _, file) in dict(zip(addresses, files, strict=True)).items():
            place, path = _place(file, raw, folder)
            size = path.stat().st_size if path else file.bytes
            size = size or (recorded[address].bytes if address in recorded else 0)
            yield f"  {file.name:<36} {_megabytes(size):>10}  {place:<9}  {address}"
            if place == "to fetch":
                to_fetch[address] = size
        yield ""
    unknown = sum(not size for size in to_fetch.values())
    more = f", {unknown} of them of unknown size" if unknown else ""
    yield f"to fetch: {len(to_fetch)} files, {_megabytes(sum(to_fetch.values()))}{more}"


def _place(file: File, raw: Path, corpus: str) -> tuple[str, Path | None]:
    if file.path:
        own = Path(file.path)
        return ("your own", own) if own.is_file() else ("missing", None)
    if here := sorted((raw / corpus).glob(f"*/{file.name}")):
        return "here", here[0]
    mirrored = Path(os.environ.get(MIRROR, "/dev/null"), corpus, file.name)
    return ("mirror", mirrored) if mirrored.is_file() else ("to fetch", None)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size else "?"
