"""Corpora fetched by URL, mirror or path, every file checked by SHA-256 before it has its name."""

import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests

from headcount.base.errors import EnvironmentFault, HeadcountError, UserError
from headcount.base.files import sha256, whole_file
from headcount.base.settings.names import check_file_name, check_own_file
from headcount.data.lines import OPENERS
from headcount.data.manifest import Texts, write_manifest

MIRROR = "HEADCOUNT_MIRROR"
WAITS = (1, 4, 15)
"""Seconds before the second, third and fourth attempt."""
TIMEOUT = 60
"""Seconds without a byte after which an attempt is given up."""

_LOCAL = {("http", host) for host in ("127.0.0.1", "localhost", "::1")}


@dataclass(frozen=True)
class _Source:
    """One raw file: the name it gets, the checksum it must have (None: any), where it comes from.

    `own` is a file of the person who runs this. A public file has a `url`, or else can only
    come from a mirror.
    """

    name: str
    sha256: str | None
    url: str | None = None
    own: Path | None = None


def fetch_corpus(corpus: str, entry: Mapping[str, Any], folder: Path) -> None:
    """Fetch every file of a corpus into `folder`, then write `manifest.json` there.

    `entry` holds `base_url` and `splits`: {split: {language: {"file", "sha256", "member"}}}, or
    {"path", "sha256", "member"} for a person's own file, whose checksum may be null. A file
    that is there with the right checksum is not fetched again. If the environment variable
    HEADCOUNT_MIRROR names a folder, public files are taken from `<mirror>/<corpus>/<file>` and
    never from the network.

    Raises UserError for a faulty entry or own file, EnvironmentFault if a public file cannot be
    had. What was in the folder before then stays.
    """
    sources: dict[str, _Source] = {}
    rows: Texts = {}
    if not entry.get("splits") or not isinstance(entry["splits"], Mapping):
        found = entry.get("splits")
        raise UserError(f"{corpus}: expected splits with files in its entry, found {found!r}")
    for split, sides in entry["splits"].items():
        rows[split] = {}
        for language, given in sides.items():
            source = _source(f"{corpus}, {split}, {language}", given, entry, f"{split}.{language}")
            # Names that differ only by case are one file on some disks.
            if sources.setdefault(source.name.casefold(), source) != source:
                raise UserError(f"{corpus}: two different files would be named {source.name}")
            own, member = given.get("path") or None, given.get("member") or None
            rows[split][language] = {"file": source.name, "member": member, "own": own}
    for source in sources.values():
        _fetch(corpus, source, folder / source.name)
    about = {"corpus": corpus, "pretokenised": bool(entry.get("pretokenised"))}
    write_manifest(folder, about | {"base_url": entry.get("base_url")}, rows)


def _source(
    where: str, given: Mapping[str, Any], entry: Mapping[str, Any], own_name: str
) -> _Source:
    if given.get("path"):
        own_file = Path(given["path"])
        packed = own_file.suffix if own_file.suffix.lower() in OPENERS else ""
        return _Source(own_name + packed, given.get("sha256"), own=own_file)
    name, base = given.get("file"), entry.get("base_url")
    if not name or not given.get("sha256"):
        raise UserError(f"{where}: expected a file and its sha256, or a path, found {dict(given)}")
    try:
        check_file_name(name)
    except ValueError as fault:
        raise UserError(f"{where}: {fault}") from None
    parts = urlsplit(base or "")
    if base and parts.scheme != "https" and (parts.scheme, parts.hostname) not in _LOCAL:
        raise UserError(f"{where}: expected a base_url that begins with https://, found {base!r}")
    return _Source(name, given["sha256"], url=f"{base.rstrip('/')}/{name}" if base else None)


def _fetch(corpus: str, source: _Source, target: Path) -> None:
    """Put a file into its place, unless it is there already with the right checksum."""
    if source.sha256 and target.is_file() and sha256(target) == source.sha256:
        return
    mirror = os.environ.get(MIRROR)
    if source.own:
        check_own_file(str(source.own))
        _copy(source.own, source.sha256, target, UserError)
    elif mirror:
        mirrored = Path(mirror) / corpus / source.name
        if not mirrored.is_file():
            raise EnvironmentFault(
                f"{mirrored}: not in the mirror that {MIRROR} names. Put the file there ("
                f"{source.url or 'it has no public address'}), or unset {MIRROR} to use the "
                "network."
            )
        _copy(mirrored, source.sha256, target, EnvironmentFault)
    elif source.url:
        _download(source, target)
    else:
        raise EnvironmentFault(
            f"{corpus}: {source.name} is published at no fixed address. Get it as the corpus's "
            f"citation says, put it into <folder>/{corpus}/ and name that folder in {MIRROR}."
        )


def _copy(origin: Path, expected: str | None, target: Path, kind: type[HeadcountError]) -> None:
    with whole_file(target) as part:
        shutil.copyfile(origin, part)
        if expected:
            _check(part, expected, str(origin), kind)


def _download(source: _Source, target: Path) -> None:
    """Download with retries; the target appears, or changes, only by a file that checks out."""
    get = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(),
        chunk_size=2**16,
        timeout=TIMEOUT,
        # A server that compresses on the way would change the bytes that are hashed.
        headers={"Accept-Encoding": "identity"},
    )
    # Not pooch's own retries: they wait too briefly, say nothing, and would drop the page received.
    for wait in (*WAITS, None):
        try:
            with whole_file(target) as part:
                get(source.url, str(part), None)
                _check(part, source.sha256, source.url, EnvironmentFault)
            return
        except requests.RequestException as reason:
            fault = EnvironmentFault(
                f"{source.url}: expected a file with SHA-256 {source.sha256}, found none: "
                f"{reason}. Check the network, or put the file into a mirror and name it in "
                f"{MIRROR}."
            )
        except EnvironmentFault as wrong:
            fault = wrong
        if wait is None:
            raise fault
        print(f"{fault}\nTrying again in {wait} s.", file=sys.stderr)
        time.sleep(wait)


def _check(part: Path, expected: str, origin: str, kind: type[HeadcountError]) -> None:
    """Raise `kind` unless the file has the expected SHA-256."""
    found = sha256(part)
    if found == expected:
        return
    with part.open("rb") as file:
        start = file.read(64).lstrip().lower()
    page = " (an HTML page)" if start.startswith((b"<!doctype html", b"<html")) else ""
    raise kind(
        f"{origin}: wrong content. Expected SHA-256 {expected}, found {found} in "
        f"{part.stat().st_size} bytes{page}. The file was not kept; if the publisher has changed "
        "it, compare and correct config/corpora.yaml."
    )
