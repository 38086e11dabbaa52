"""The manifest of a corpus: which raw file holds which side of which split, and its checksum.

It stands beside the raw files and depends on nothing but them, so that it may be compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_json

NAME = "manifest.json"


@dataclass(frozen=True)
class RawText:
    """One side of one split: a file in the manifest's folder, or a member of an archive there.

    `own` is the person's own file that it is a copy of, if it is one.
    """

    file: str
    member: str | None = None
    own: str | None = None


class FoundText(NamedTuple):
    """Where one side of a split lies, and what messages call it: one's own file by its path."""

    path: Path
    member: str | None
    shown: str


def write_manifest(
    folder: Path, about: Mapping[str, Any], splits: Mapping[str, Mapping[str, RawText]]
) -> None:
    """Write the manifest of the files in `folder`; `splits` is {split: {language: text}}.

    `about` goes in first: what else there is to say about the corpus, such as its name.
    """
    files = sorted({text.file for sides in splits.values() for text in sides.values()})
    facts = {
        name: {"sha256": sha256(folder / name), "bytes": (folder / name).stat().st_size}
        for name in files
    }
    listed = {
        split: {language: _row(text, facts[text.file]) for language, text in sides.items()}
        for split, sides in splits.items()
    }
    write_json(folder / NAME, {**about, "splits": listed})


def find_text(manifest: Path, split: str, language: str) -> FoundText:
    """Raw file and archive member (None: the whole file) of one side, its checksum verified.

    Raises UserError if the corpus has no such split or language, or if the file is missing or
    is not the one the manifest was written for.
    """
    listed = _splits(manifest)
    if language not in listed.get(split, {}):
        known = "; ".join(f"{name}: {', '.join(sides)}" for name, sides in listed.items())
        raise UserError(
            f"{manifest}: expected the split {split!r} in the language {language!r}, found "
            f"{known}. Check the pair, the test sets and config/corpora.yaml."
        )
    row = listed[split][language]
    path = manifest.parent / row["file"]
    if not path.is_file():
        raise UserError(
            f"{path}: this raw file is missing; delete {manifest} and run again to fetch it"
        )
    found = sha256(path)
    if found != row["sha256"]:
        raise UserError(
            f"{path}: changed since its download. Expected {row['bytes']} bytes with SHA-256 "
            f"{row['sha256']}, found {path.stat().st_size} bytes with {found}. "
            f"Delete {manifest} and run the download again."
        )
    return FoundText(path, row.get("member"), row.get("own", str(path)))


def _row(text: RawText, facts: Mapping[str, Any]) -> dict[str, Any]:
    optional = {"member": text.member, "own": text.own}
    return {"file": text.file, **facts} | {key: value for key, value in optional.items() if value}


def _splits(manifest: Path) -> dict[str, dict[str, dict[str, Any]]]:
    try:
        return read_json(manifest)["splits"]
    except FileNotFoundError:
        raise UserError(f"{manifest}: no such manifest; download its corpus first") from None
    except (ValueError, KeyError, TypeError) as fault:
        raise UserError(
            f"{manifest}: not a manifest ({fault}); delete it and run the download again"
        ) from None
