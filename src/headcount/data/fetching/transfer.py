"""Files fetched over the network, which go on where an earlier attempt was cut."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import requests
from tqdm import tqdm

from headcount.base.errors import EnvironmentFault
from headcount.base.files import naming, whole_file, write_json

MIRROR = "HEADCOUNT_MIRROR"
"""Environment variable that names a folder to take files from instead."""
WAITS = (1, 4, 15)
"""Seconds before the second, third and fourth attempt."""
TIMEOUT = 60
"""Seconds without a byte after which an attempt is given up."""

_LOCAL = {"127.0.0.1", "localhost"}
# A server that compresses on the way would change the bytes that are counted and hashed.
_AS_IT_IS = {"Accept-Encoding": "identity"}
_CHUNK = 2**16


def fetch(url: str, target: Path, known: bool, check: Callable[[Path], None]) -> None:
    """Fetch a file, with retries; the target appears, or changes, only by one that passes `check`.

    What came before a connection was cut stays beside the target, and the next attempt, of this
    call or a later one, asks for the rest. `known`: the checksum is known, so that what was put
    together of several answers can be told from a file that changed meanwhile. Where it is not, the
    server must have said which version it sent. `check` raises EnvironmentFault, which is tried
    again too. Raises that of the last attempt.
    """
    partial = target.with_name(f".fetched-{target.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    for wait in (*WAITS, None):
        try:
            with naming(target, partial), _keeping(url, partial, known):
                _transfer(url, partial, known)
            with whole_file(target) as whole:
                partial.replace(whole)
                _about(partial).unlink(missing_ok=True)
                check(whole)
            return
        except requests.RequestException as reason:
            fault = EnvironmentFault(
                f"{url}: expected a file, found {_kept(partial)}: {reason}. Check the network, or "
                f"put the file into a mirror and name it in {MIRROR}."
            )
        except EnvironmentFault as wrong:
            fault = wrong
        if wait is None:
            raise fault
        print(f"{fault}\nTrying again in {wait} s.", file=sys.stderr)
        time.sleep(wait)


@contextmanager
def _keeping(url: str, partial: Path, known: bool) -> Iterator[None]:
    """Leave nothing behind of an attempt that no later one could go on from."""
    try:
        yield
    except BaseException:
        if not _resume(url, partial, known)[0]:
            partial.unlink(missing_ok=True)
            _about(partial).unlink(missing_ok=True)
        raise


def size_of(url: str) -> int | None:
    """Bytes of a published file, as its server says; None if it does not."""
    try:
        answer = requests.head(url, headers=_AS_IT_IS, allow_redirects=True, timeout=TIMEOUT)
        answer.raise_for_status()
    except requests.RequestException:
        return None
    return int(answer.headers.get("Content-Length", 0)) or None


def _transfer(url: str, partial: Path, known: bool) -> None:
    """Write what a server sends to the end of `partial`, or to its place if it sends all again."""
    start, headers = _resume(url, partial, known)
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        where = urlsplit(answer.url)
        if where.scheme != "https" and where.hostname not in _LOCAL:
            raise EnvironmentFault(f"{url}: led to {answer.url}, which is not https; not fetched")
        if start and answer.status_code == requests.codes.requested_range_not_satisfiable:
            if answer.headers.get("Content-Range") == f"bytes */{start}":
                return  # all of it was here already
            partial.unlink()
            raise EnvironmentFault(f"{url}: is shorter now than what was fetched; starting anew")
        answer.raise_for_status()
        if answer.status_code != requests.codes.partial_content:
            start = 0
        elif not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            partial.unlink()
            raise EnvironmentFault(f"{url}: sent another part than was asked for; starting anew")
        length = answer.headers.get("Content-Length")
        if length is None and not known and not answer.raw.chunked:
            raise EnvironmentFault(
                f"{url}: neither its size nor its checksum is known, so that a cut could not be "
                "told; fetch it by hand, and put it into a mirror"
            )
        tag = answer.headers.get("ETag", "W/")  # a weak one tells no versions apart
        version = answer.headers.get("Last-Modified") if tag.startswith("W/") else tag
        write_json(_about(partial), {"url": url, "version": version})
        _write(answer, partial, start, start + int(length) if length else None)


def _resume(url: str, partial: Path, known: bool) -> tuple[int, dict[str, str]]:
    """Bytes that need not be fetched again, and the headers that ask for the others."""
    try:
        about = json.loads(_about(partial).read_text(encoding="utf-8"))
        version, same = about["version"], about["url"] == url
        start = partial.stat().st_size
    except (OSError, ValueError, KeyError, TypeError):  # the last two of JSON by someone else
        return 0, _AS_IT_IS
    if not start or not same or not (version or known):
        return 0, _AS_IT_IS
    if_same = {"If-Range": version} if version else {}  # another version is sent whole
    return start, _AS_IT_IS | {"Range": f"bytes={start}-"} | if_same


def _write(answer: requests.Response, partial: Path, start: int, total: int | None) -> None:
    bar = tqdm(
        desc=partial.name.removeprefix(".fetched-"),
        initial=start,
        total=total,
        unit="B",
        unit_scale=True,
        disable=not sys.stderr.isatty(),
    )
    with bar, partial.open("ab" if start else "wb") as file:
        for chunk in answer.iter_content(_CHUNK):
            file.write(chunk)
            bar.update(len(chunk))


def _kept(partial: Path) -> str:
    size = partial.stat().st_size if partial.exists() else 0
    return f"{size} bytes of it, which are kept to go on from" if size else "none"


def _about(partial: Path) -> Path:
    """The file that says where `partial` comes from, and which version of it that is."""
    return partial.with_name(f"{partial.name}.json")
