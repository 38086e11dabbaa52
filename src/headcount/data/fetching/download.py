"""Corpora fetched by URL, mirror or path, every file checked by SHA-256 before it has its name."""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault, HeadcountError, UserError
from headcount.base.files import sha256, whole_file
from headcount.base.settings.names import check_own_file
from headcount.base.settings.reading.faults import checked, keyed
from headcount.base.settings.text.sources import BY_LANGUAGE, File, Published, Side, Source
from headcount.data.archives import OPENERS
from headcount.data.fetching.checksums import LOCK, read_lock, record
from headcount.data.fetching.transfer import MIRROR, fetch
from headcount.data.manifest import Row, write_manifest

# What each kind of packed file starts with: tells a page about an error from the file.
_STARTS = {
    ".gz": b"\x1f\x8b",
    ".tgz": b"\x1f\x8b",
    ".zip": b"PK",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ",
}
_PAGES = (b"<!doctype html", b"<html")


def fetch_corpus(corpus: str, entry: Mapping[str, Any], folder: Path, lock: Path = LOCK) -> None:
    """Fetch every file of a corpus into `folder`, then write `manifest.json` there.

    `entry` holds what of a corpus in corpora.yaml is published or one's own. A file that is there
    with the right checksum is not fetched again; nor is one that another corpus or an earlier entry
    left in a folder `data/raw/<corpus>/<recipe>`. If the environment variable HEADCOUNT_MIRROR
    names a folder, public files are taken from `<mirror>/<corpus>/<file>` and never from the
    network. The checksum of a public file that has none in the entry is recorded in `lock`; later
    fetches must match it.

    Raises UserError for a faulty entry or own file, EnvironmentFault if a public file cannot be
    had. What was in the folder before then stays.
    """
    given = checked(Published, entry, lambda path: f"{corpus}: {keyed(path)}")
    plan = _Plan(corpus, given.base_url)
    splits = {
        split: {
            language: plan.side(side, f"{split}.{language}", language)
            for language, side in sides.items()
        }
        for split, sides in given.splits.items()
    }
    about = {
        "corpus": corpus,
        "pretokenised": given.pretokenised,
        "base_url": given.base_url,
        **_rules(given, plan),
    }
    if not plan.files:
        raise UserError(f"{corpus}: expected splits with files in its entry, found {dict(entry)!r}")
    for file in plan.files.values():
        fetch_file(corpus, file, folder / file.name, lock)
    write_manifest(folder, about, splits)


def _rules(given: Published, plan: "_Plan") -> dict[str, dict[str, Any]]:
    """What else the manifest says: which pairs splits take, and labelled pairs."""
    rules = {
        "hold_out": {key: rule.model_dump() for key, rule in given.hold_out.items()},
        "overlap": {
            split: {
                "at_least": rule.at_least,
                "ids": plan.row(rule.ids, f"{split}.ids"),
                "links": plan.row(rule.links, f"{split}.links"),
            }
            for split, rule in given.overlap.items()
        },
        "entailment": {split: plan.row(file, split) for split, file in given.entailment.items()},
    }
    return {key: rule for key, rule in rules.items() if rule}


@dataclass(frozen=True)
class RawFile:
    """One raw file: the name it gets, what it must be (None: anything), where it comes from.

    `own` is a file of the person who runs this; a public one has a `url`.
    """

    name: str
    sha256: str | None
    md5: str | None
    size: int | None
    url: str | None
    own: str | None
    entry: str = "config/corpora.yaml"
    """Where its checksum can be corrected."""


class _Plan:
    """The files of a corpus, each once, and the rows that the manifest has for them."""

    def __init__(self, corpus: str, base_url: str | None):
        self._corpus = corpus
        self._base_url = base_url
        self._owned: dict[str, str] = {}  # names of own files, by path
        self.files: dict[str, RawFile] = {}

    def side(self, side: Side, name: str, language: str) -> dict[str, Any]:
        """What the manifest says of a side; `name` is for its files if they are one's own."""
        rows = [
            self._sentences(each, f"{name}.{number}" if number > 1 else name, language)
            for number, each in enumerate(side.files, start=1)
        ]
        if side.parts or side.references:
            return {"parts" if side.parts else "references": rows}
        return rows[0]

    def row(self, file: File, own_name: str) -> Row:
        """What the manifest says of a file, which from now on is to be fetched."""
        raw = self._raw(file, own_name)
        # Names that differ only by case are one file on some disks.
        if self.files.setdefault(raw.name.casefold(), raw) != raw:
            raise UserError(f"{self._corpus}: two different files would be named {raw.name}")
        return {"file": raw.name, "member": file.member, "own": raw.own}

    def _sentences(self, source: Source, own_name: str, language: str) -> Row:
        how: Row = source.model_dump(include={"column", "separator", "translator"})
        if source.read_as != "plain":
            how["format"] = source.read_as
        if source.read_as in BY_LANGUAGE:
            how["language"] = language
        return self.row(source, own_name) | how

    def _raw(self, file: File, own_name: str) -> RawFile:
        if file.path is None:
            url = file.url or f"{self._base_url}/{file.file}"
            return RawFile(file.name, file.sha256, file.md5, file.bytes, url, None)
        suffix = Path(file.path).suffix
        packed = suffix if suffix.lower() in (*OPENERS, ".zip", ".tar") else ""
        name = self._owned.setdefault(file.path, own_name + packed)
        return RawFile(name, file.sha256, file.md5, file.bytes, None, file.path)


class _Check:
    """What a raw file must be: by its entry, or as recorded when it was fetched first."""

    def __init__(self, file: RawFile, lock: Path):
        self._file = file
        self._lock = lock
        known = None if file.sha256 or file.own else read_lock(lock).get(file.url)
        self._since = f", recorded in {lock} on {known.date}" if known else ""
        self.sha256 = known.sha256 if known else file.sha256

    def __call__(self, part: Path, origin: str, kind: type[HeadcountError]) -> None:
        """Raise `kind` for a file that is another one; record one that is fetched first."""
        found = sha256(part)
        fault = self._fault(part, found)
        if fault:
            with part.open("rb") as file:
                start = file.read(64).lstrip().lower()
            page = " (an HTML page)" if start.startswith(_PAGES) else ""
            advice = (
                f"that is meant, delete its entry in {self._lock}: results may change"
                if self._since
                else f"the publisher has changed it, compare and correct {self._file.entry}"
            )
            raise kind(
                f"{origin}: wrong content. Expected {fault} in {part.stat().st_size} bytes{page}. "
                f"The file was not kept; if {advice}."
            )
        if self.sha256 is None and self._file.own is None:
            record(self._lock, self._file.url, found, part.stat().st_size)
            print(
                f"{origin}: fetched for the first time. Its SHA-256, {found}, is recorded in "
                f"{self._lock} from now on; commit that file, so that everyone has the same data.",
                file=sys.stderr,
            )

    def _fault(self, part: Path, found: str) -> str:
        """What was expected and what was found instead; nothing if all is well."""
        file, size = self._file, part.stat().st_size
        if self.sha256 is not None:
            wrong = found != self.sha256
            return f"SHA-256 {self.sha256}{self._since}, found {found}" if wrong else ""
        with part.open("rb") as content:
            md5 = hashlib.file_digest(content, "md5").hexdigest() if file.md5 else None
            content.seek(0)
            start = content.read(64)
        if md5 != file.md5:
            return f"MD5 {file.md5}, found {md5}"
        if file.size not in (None, size):
            return f"{file.size} bytes, found others"
        if file.own:
            return ""
        end = Path(file.name).suffix.lower()
        if not start.startswith(_STARTS.get(end, b"")) or start.lstrip().lower().startswith(_PAGES):
            return f"a {end} file, found another"
        return ""


def fetch_file(corpus: str, file: RawFile, target: Path, lock: Path) -> None:
    """Put a file into its place, unless it is there already with the right checksum.

    `corpus`: the folder of data/raw that it belongs into, and its folder in a mirror. Raises as
    `fetch_corpus`.
    """
    check = _Check(file, lock)
    own = file.own and os.path.exists(file.own)  # it may have changed since it was copied
    if check.sha256 and not own and target.is_file() and sha256(target) == check.sha256:
        return
    mirror = os.environ.get(MIRROR)
    if file.own:
        check_own_file(file.own)
        _copy(Path(file.own), target, check, UserError)
    elif check.sha256 and (beside := _beside(corpus, target, check.sha256)):
        with whole_file(target) as part:
            try:
                os.link(beside, part)
            except OSError:  # a disk without links
                shutil.copyfile(beside, part)
    elif mirror:
        mirrored = Path(mirror) / corpus / file.name
        if not mirrored.is_file():
            raise EnvironmentFault(
                f"{mirrored}: not in the mirror that {MIRROR} names. Put the file there ("
                f"{file.url}), or unset {MIRROR} to use the network."
            )
        _copy(mirrored, target, check, EnvironmentFault)
    else:
        url, known = file.url, bool(check.sha256 or file.md5)
        fetch(url, target, known, lambda part: check(part, url, EnvironmentFault))


def _beside(corpus: str, target: Path, expected: str) -> Path | None:
    """The same file in the folder of another corpus, of an earlier entry or of other code."""
    if target.parents[1].name != corpus:  # not in data/raw/<corpus>/<recipe>
        return None
    others = (path for path in sorted(target.parents[2].glob(f"*/*/{target.name}")))
    return next((path for path in others if path != target and sha256(path) == expected), None)


def _copy(origin: Path, target: Path, check: _Check, kind: type[HeadcountError]) -> None:
    with whole_file(target) as part:
        shutil.copyfile(origin, part)
        check(part, str(origin), kind)
