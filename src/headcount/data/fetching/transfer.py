"""Files over the network: fetched in pieces, recorded by checksum, listed with size and place."""

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import requests
import yaml
from pydantic import Field, RootModel
from tqdm import tqdm

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import naming, whole_file, write_text
from headcount.base.settings.corpora import Corpus
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import SHA256, Section
from headcount.base.settings.sources import File

MIRROR = "HEADCOUNT_MIRROR"
"""Environment variable that names a folder to take files from instead."""
WAITS = (1, 4, 15)
"""Seconds before the second, third and fourth attempt."""


def fetch(url: str, target: Path, known: bool, check: Callable[[Path], None]) -> None:
    """Fetch a file, with retries. The target appears, or changes, only if it passes `check`.

    After a cut, the next attempt or call requests the rest if the checksum is `known`.
    """
    partial = target.with_name(f".fetched-{target.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not known:
        partial.unlink(missing_ok=True)
    for wait in (*WAITS, None):
        try:
            with naming(target, partial):
                with _request(url, partial) as answer:
                    _write(answer, partial, known)
                with whole_file(target) as whole:
                    partial.replace(whole)
                    check(whole)
            return
        except requests.RequestException as reason:
            advice = f"check the network, or put the file into a mirror and name it in {MIRROR}"
            fault = EnvironmentFault(f"{url}: {reason}; {advice}")
        except EnvironmentFault as wrong:
            fault = wrong
        if partial.exists() and not (known and partial.stat().st_size):
            partial.unlink()
        if wait is None:
            raise fault
        print(f"{fault}\nTrying again in {wait} s.", file=sys.stderr)
        time.sleep(wait)


def _request(url: str, partial: Path) -> requests.Response:
    """Request the bytes that `partial` lacks."""
    # A server that compresses on the way would change the bytes that are counted and hashed.
    headers = {"Accept-Encoding": "identity"}
    if start := partial.stat().st_size if partial.exists() else 0:
        headers["Range"] = f"bytes={start}-"
    answer = requests.get(url, headers=headers, stream=True, timeout=60)
    place = urlsplit(answer.url)
    if place.scheme != "https" and place.hostname not in ("127.0.0.1", "localhost"):
        raise EnvironmentFault(f"{url}: led to {answer.url}, which is not https; not fetched")
    return answer


def _write(answer: requests.Response, partial: Path, known: bool) -> None:
    """Append the rest of a file to `partial`, or replace its content by the whole file."""
    start = partial.stat().st_size if partial.exists() else 0
    spans = answer.headers.get("Content-Range", "")
    if answer.status_code == requests.codes.requested_range_not_satisfiable:
        if spans == f"bytes */{start}":
            return  # all of it was here already
        partial.unlink(missing_ok=True)
    answer.raise_for_status()
    if answer.status_code != requests.codes.partial_content:
        start = 0
    elif not spans.startswith(f"bytes {start}-"):
        partial.unlink(missing_ok=True)
        raise EnvironmentFault(f"{answer.url}: sent another part than requested; starting anew")
    length = answer.headers.get("Content-Length")
    if length is None and not known and not answer.raw.chunked:
        lack = "neither its size nor its checksum is known, so a cut would not show"
        raise EnvironmentFault(f"{answer.url}: {lack}; put the file into a mirror")
    total, name = start + int(length) if length else None, partial.name.removeprefix(".fetched-")
    shown = {"desc": name, "initial": start, "total": total, "disable": not sys.stderr.isatty()}
    with (
        partial.open("ab" if start else "wb") as file,
        tqdm.wrapattr(file, "write", **shown) as counted,
    ):
        for chunk in answer.iter_content(2**16):
            counted.write(chunk)


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


_Lock = RootModel[dict[str, Recorded]]


def read_lock(lock: Path) -> dict[str, Recorded]:
    """Return the recorded files by address, none without a lock file. Raises UserError."""
    return read_settings(lock, _Lock).root if lock.exists() else {}


def record(lock: Path, address: str, sha256: str, size: int) -> None:
    """Record a file at its first fetch. Several jobs may do so at once."""
    lock.absolute().parent.mkdir(parents=True, exist_ok=True)
    with lock.with_name(".headcount.lock").open("a") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        known = read_lock(lock)
        mine = Recorded(sha256=sha256, bytes=size, date=f"{datetime.now(UTC):%Y-%m-%d}")
        theirs = known.setdefault(address, mine)
        if theirs.sha256 != sha256:
            sums = f"SHA-256 {sha256} and {theirs.sha256}"
            raise UserError(f"{address}: fetched twice at once, with different {sums}; run again")
        rows = {url: file.model_dump() for url, file in sorted(known.items())}
        write_text(lock, _HEAD + yaml.safe_dump(rows, sort_keys=False))


def list_corpora(
    corpora: Mapping[str, Corpus], raw: Path, recorded: Mapping[str, Recorded]
) -> Iterator[str]:
    """Yield lines with licence, citation and files of each corpus, and the sum to fetch."""
    to_fetch: dict[str, int] = {}
    for name, corpus in corpora.items():
        yield from (name, f"  licence: {corpus.licence}", f"  cite: {corpus.citation}")
        if corpus.generator:
            yield "  generated here"
        files = [(corpus.of or name, corpus.base_url, file) for file in corpus.files()]
        files += [(name, tree.base_url, tree) for tree in corpus.trees.values()]
        addresses = [file.path or file.url or f"{base}/{file.file}" for _, base, file in files]
        for address, (folder, _, file) in dict(zip(addresses, files, strict=True)).items():
            place = _place(file, raw, folder)
            size = file.bytes or (recorded[address].bytes if address in recorded else 0)
            yield f"  {file.name:<36} {_megabytes(size):>10}  {place:<9}  {address}"
            if place == "to fetch":
                to_fetch[address] = size
        yield ""
    unknown = list(to_fetch.values()).count(0)
    more = f", {unknown} of them of unknown size" if unknown else ""
    yield f"to fetch: {len(to_fetch)} files, {_megabytes(sum(to_fetch.values()))}{more}"


def _place(file: File, raw: Path, corpus: str) -> str:
    if file.path:
        return "your own" if Path(file.path).is_file() else "missing"
    if any((raw / corpus).glob(f"*/{file.name}")):
        return "here"
    mirrored = Path(os.environ.get(MIRROR, "/dev/null"), corpus, file.name)
    return "mirror" if mirrored.is_file() else "to fetch"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size else "?"
