"""Corpora fetched by URL, mirror or path. A file gets its name after its checksum is verified."""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import sha256, whole_file
from headcount.base.settings.checking import checked, keyed
from headcount.base.settings.section import check_own_file
from headcount.base.settings.sources import File, Published, Side
from headcount.data.fetching.transfer import LOCK, MIRROR, Recorded, fetch, read_lock, record
from headcount.data.lines import OPENERS
from headcount.data.manifest import Row, Texts, write_manifest

_PAGES = (b"<!doctype html", b"<html")


def fetch_corpus(corpus: str, entry: Mapping[str, Any], folder: Path, lock: Path = LOCK) -> None:
    """Fetch every file of a corpus of corpora.yaml into `folder`, then write `manifest.json` there.

    A file with the right checksum is taken from `folder` or another `data/raw/<corpus>/<recipe>`.
    With a mirror, public files come from `<mirror>/<corpus>/<file>` and never from the network.
    `lock` records the checksum of a public file without one.
    """
    given = checked(Published, entry, lambda path: f"{corpus}: {keyed(path)}")
    plan = _Plan(corpus, given.base_url)
    splits: Texts = {
        split: {name: plan.side(side, f"{split}.{name}", name) for name, side in sides.items()}
        for split, sides in given.splits.items()
    }
    overlap = {
        split: {
            "at_least": rule.at_least,
            "ids": plan.row(rule.ids, f"{split}.ids"),
            "links": plan.row(rule.links, f"{split}.links"),
        }
        for split, rule in given.overlap.items()
    }
    links = {
        split: {pair: plan.row(file, f"{split}.{pair}.links") for pair, file in files.items()}
        for split, files in given.links.items()
    }
    about = {
        "corpus": corpus,
        **given.model_dump(include={"pretokenised", "base_url", "hold_out"}),
        "overlap": overlap,
        "links": links,
        "entailment": {split: plan.row(file, split) for split, file in given.entailment.items()},
    }
    if not plan.files:
        raise UserError(f"{corpus}: expected splits with files in its entry, found {dict(entry)!r}")
    for name, file in plan.files.values():
        fetch_file(corpus, file, folder / name, lock)
    write_manifest(folder, about, splits)


class _Plan:
    """The files of a corpus, each once, and their rows in the manifest."""

    def __init__(self, corpus: str, base_url: str | None):
        self._corpus = corpus
        self._base_url = base_url
        self._owned: dict[str, str] = {}  # names of own files, by path
        self.files: dict[str, tuple[str, File]] = {}

    def side(self, side: Side, name: str, language: str) -> dict[str, Any]:
        """Return the manifest's entry of a side. `name` is for a person's own files."""
        rows = []
        for number, source in enumerate(side.files, start=1):
            row = self.row(source, f"{name}.{number}" if number > 1 else name)
            row |= source.model_dump(include={"column", "separator", "translator"})
            rows.append(row | {"format": source.read_as, "language": language})
        if side.parts or side.references:
            return {"parts" if side.parts else "references": rows}
        return rows[0]

    def row(self, file: File, own_name: str) -> Row:
        """Return the manifest's row of a file, and plan to fetch it."""
        name, url = file.name, file.url or f"{self._base_url}/{file.file}"
        if file.path is not None:
            suffix = Path(file.path).suffix
            own_name += suffix if suffix.lower() in (*OPENERS, ".zip", ".tar") else ""
            name, url = self._owned.setdefault(file.path, own_name), None
        keys = file.model_dump(include={"path", "sha256", "md5", "bytes"})
        raw = name, File.model_construct(url=url, **keys)
        # Names that differ only by case are one file on some disks.
        if self.files.setdefault(name.casefold(), raw) != raw:
            raise UserError(f"{self._corpus}: two different files would be named {name}")
        return {"file": name, "member": file.member, "own": file.path}


def fetch_file(corpus: str, file: File, target: Path, lock: Path) -> None:
    """Put a file into its place, unless it is there already with the right checksum."""
    known = None if file.sha256 or file.path else read_lock(lock).get(file.url)
    wanted = known.sha256 if known else file.sha256
    own = file.path and os.path.exists(file.path)  # it may have changed since it was copied
    if wanted and not own and target.is_file() and sha256(target) == wanted:
        return
    place = Path(corpus, target.name)
    origin = file.path or _beside(corpus, target, wanted) or _mirrored(place, file.url)

    def check(part: Path) -> None:
        _check(file, known, lock, part, origin or file.url)

    if file.path:
        check_own_file(file.path)
    if origin is None:
        fetch(file.url, target, bool(wanted or file.md5), check)
        return
    with whole_file(target) as part:
        shutil.copyfile(origin, part)
        check(part)


def _beside(corpus: str, target: Path, wanted: str | None) -> Path | None:
    """Return the same file in another folder of data/raw."""
    if wanted is None or target.parents[1].name != corpus:  # not in data/raw/<corpus>/<recipe>
        return None
    others = sorted(target.parents[2].glob(f"*/*/{target.name}"))
    return next((path for path in others if path != target and sha256(path) == wanted), None)


def _mirrored(place: Path, url: str | None) -> Path | None:
    """Return the file of a mirror, or nothing without a mirror. Raises EnvironmentFault."""
    mirror = os.environ.get(MIRROR)
    if mirror and not (mirror / place).is_file():
        raise EnvironmentFault(f"{mirror / place}: not in the mirror {MIRROR}; put {url} there")
    return mirror / place if mirror else None


def _check(file: File, known: Recorded | None, lock: Path, part: Path, origin: Any) -> None:
    """Raise a fault for wrong content. Record the checksum of a first fetch."""
    actual, wanted = sha256(part), known.sha256 if known else file.sha256
    if fault := _fault(file, wanted, part, actual):
        advice = "if its publisher has changed it, compare and correct its entry in config/"
        if known:
            advice = f"{lock} has the checksum of {known.date}; with a new one results change"
        kind = UserError if file.path else EnvironmentFault
        raise kind(f"{origin}: wrong content, not kept. Expected {fault}; {advice}.")
    if wanted is None and file.path is None:
        record(lock, file.url, actual, part.stat().st_size)
        note = f"its SHA-256, {actual}, is now in {lock}; commit it, so that all have the same data"
        print(f"{origin}: fetched for the first time; {note}", file=sys.stderr)


def _fault(file: File, wanted: str | None, part: Path, actual: str) -> str:
    """Return expected and actual content, or nothing if all is well."""
    size = part.stat().st_size
    with part.open("rb") as content:
        page = content.read(64).lstrip().lower().startswith(_PAGES)
        content.seek(0)
        md5 = hashlib.file_digest(content, "md5").hexdigest() if file.md5 else None
    shown = f"{size} bytes" + " (an HTML page)" * page
    if wanted is not None:
        return "" if actual == wanted else f"SHA-256 {wanted}, found {actual} in {shown}"
    if md5 != file.md5:
        return f"MD5 {file.md5}, found {md5} in {shown}"
    if file.bytes not in (None, size) or (page and not file.path):
        return f"{file.bytes or 'other'} bytes, found {shown}"
    return ""
