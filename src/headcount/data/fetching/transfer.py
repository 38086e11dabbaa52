"""Files over the network. A cut download goes on where it stopped."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import requests
from tqdm import tqdm

from headcount.base.errors import EnvironmentFault
from headcount.base.files import naming, whole_file

MIRROR = "HEADCOUNT_MIRROR"
"""Environment variable that names a folder to take files from instead."""
WAITS = (1, 4, 15)
"""Seconds before the second, third and fourth attempt."""
TIMEOUT = 60
"""Seconds without a byte after which an attempt fails."""

_LOCAL = {"127.0.0.1", "localhost"}
_CHUNK = 2**16


def fetch(url: str, target: Path, known: bool, check: Callable[[Path], None]) -> None:
    """Fetch a file, with retries. The target appears, or changes, only if it passes `check`.

    After a cut, the next attempt requests the rest, and so does the next call if the checksum is
    `known`. Otherwise the server must have named the version. `check` raises EnvironmentFault,
    which is retried too. Raises the fault of the last attempt.
    """
    partial = target.with_name(f".fetched-{target.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not known:
        partial.unlink(missing_ok=True)
    version = ""
    for wait in (*WAITS, None):
        try:
            with naming(target, partial):
                with _request(url, partial, version) as answer:
                    tag = answer.headers.get("ETag", "W/")  # weak tags do not identify bytes
                    weak = tag.startswith("W/")
                    version = answer.headers.get("Last-Modified", "") if weak else tag
                    _write(answer, partial, known)
                with whole_file(target) as whole:
                    partial.replace(whole)
                    check(whole)
            return
        except requests.RequestException as reason:
            fault = EnvironmentFault(
                f"{url}: {reason}. Check the network, or put the file into a mirror and name it in "
                f"{MIRROR}."
            )
        except EnvironmentFault as wrong:
            fault = wrong
        resumable = known or (version and wait is not None)
        if not resumable or not partial.exists() or not partial.stat().st_size:
            partial.unlink(missing_ok=True)
        if wait is None:
            raise fault
        print(f"{fault}\nTrying again in {wait} s.", file=sys.stderr)
        time.sleep(wait)


def _request(url: str, partial: Path, version: str) -> requests.Response:
    """Request the bytes that `partial` lacks, or all if the server has another version."""
    # A server that compresses on the way would change the bytes that are counted and hashed.
    headers = {"Accept-Encoding": "identity"}
    if start := partial.stat().st_size if partial.exists() else 0:
        headers |= {"Range": f"bytes={start}-"} | ({"If-Range": version} if version else {})
    answer = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    place = urlsplit(answer.url)
    if place.scheme != "https" and place.hostname not in _LOCAL:
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
        raise EnvironmentFault(
            f"{answer.url}: neither its size nor its checksum is known, so a cut would not show; "
            "fetch it by hand, and put it into a mirror"
        )
    total, name = start + int(length) if length else None, partial.name.removeprefix(".fetched-")
    shown = {"desc": name, "unit": "B", "unit_scale": True, "disable": not sys.stderr.isatty()}
    with (
        tqdm(initial=start, total=total, **shown) as bar,
        partial.open("ab" if start else "wb") as file,
    ):
        for chunk in answer.iter_content(_CHUNK):
            file.write(chunk)
            bar.update(len(chunk))
