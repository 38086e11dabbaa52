"""The manifest of a corpus: which raw file holds which side of which split, and its checksum.

It stands beside the raw files and depends on nothing but them, so that it may be compared.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_json
from headcount.data.lines import LineTally, read_lines

NAME = "manifest.json"

Row = dict[str, Any]
"""A file: `file`, its name in the manifest's folder. It may have `member`, its name in that file,
an archive; `own`, the person's own file that it is a copy of; and how its sentences are read:
`format`, `column`, `separator`, `translator`, `language`."""

Texts = dict[str, dict[str, Row | dict[str, list[Row]]]]
"""{split: {language: text}}. A text is one file, or several: its `parts` or its `references`."""


class FoundText(NamedTuple):
    """A raw file, or a member of one: where it lies, and how its sentences are read.

    `shown` is what messages call it: one's own file by its path.
    """

    path: Path
    member: str | None
    shown: str
    format: str = "plain"
    column: int | str = 1
    separator: str = ""
    translator: str | None = None
    language: str = ""

    def lines(self, tally: LineTally) -> Iterator[str]:
        """Raw lines, counted in a tally; see `read_lines`."""
        return read_lines(self.path, self.member, tally, self.shown)


def write_manifest(
    folder: Path, about: Mapping[str, Any], splits: Texts, trees: Texts | None = None
) -> None:
    """Write the manifest of the files in `folder`, with the SHA-256 and size of each.

    `about` goes in first: what else there is to say about the corpus, such as its name. `trees`:
    treebanks that were made together with the text of the splits.
    """

    @cache
    def facts(name: str) -> Row:
        path = folder / name
        return {"file": name, "sha256": sha256(path), "bytes": path.stat().st_size}

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(each) for each in value]
        if not isinstance(value, dict):
            return value
        known = {key: filled(each) for key, each in value.items() if each is not None}
        return facts(known["file"]) | known if "file" in known else known

    content = {**about, "splits": splits} | ({} if trees is None else {"trees": trees})
    write_json(folder / NAME, {key: filled(value) for key, value in content.items()})


def read_manifest(manifest: Path) -> dict[str, Any]:
    """All that a manifest says. Raises UserError if there is none, or another file."""
    try:
        about = read_json(manifest)
        about["splits"].items()
    except FileNotFoundError:
        raise UserError(f"{manifest}: no such manifest; download its corpus first") from None
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise UserError(
            f"{manifest}: not a manifest ({fault}); delete it and run the download again"
        ) from None
    return about


def find_text(manifest: Path, split: str, language: str, trees: bool = False) -> FoundText:
    """Raw file and archive member (None: the whole file) of one side, its checksum verified.

    `trees`: the split is a treebank. A generator lists its trees beside the splits of its text; a
    fetched treebank is a split of its own. Raises UserError if the corpus has no such split or
    language, or if the file is missing or is not the one the manifest was written for.
    """
    about = read_manifest(manifest)
    listed = about["splits"] | (about.get("trees", {}) if trees else {})
    return find_file(manifest, _side(manifest, listed, split, language))


def find_side(manifest: Path, split: str, language: str) -> list[list[FoundText]]:
    """The files of one side of a split, as `find_text` finds one.

    The outer list has the parts, which are read one after another; an inner one has the files that
    are read beside each other, its references.
    """
    side = _side(manifest, read_manifest(manifest)["splits"], split, language)
    if "references" in side:
        return [[find_file(manifest, row) for row in side["references"]]]
    return [[find_file(manifest, row)] for row in side.get("parts", [side])]


def find_file(manifest: Path, row: Row) -> FoundText:
    """The file of a row of the manifest. Raises UserError if it is missing or has changed."""
    path = manifest.parent / row["file"]
    if not path.is_file():
        raise UserError(
            f"{path}: this raw file is missing; delete {manifest} and run again to fetch it"
        )
    found = _sha256(path, path.stat().st_mtime_ns)
    if found != row["sha256"]:
        raise UserError(
            f"{path}: changed since its download. Expected {row['bytes']} bytes with SHA-256 "
            f"{row['sha256']}, found {path.stat().st_size} bytes with {found}. "
            f"Delete {manifest} and run the download again."
        )
    how = {key: row[key] for key in FoundText._fields if key in row}
    return FoundText(**{"path": path, "member": None, "shown": row.get("own", str(path))} | how)


@cache
def _sha256(path: Path, changed: int) -> str:
    """Of a file as it was when it changed last; both sides of a split may lie in one large file."""
    return sha256(path)


def _side(manifest: Path, listed: Mapping[str, Any], split: str, language: str) -> dict[str, Any]:
    if language in listed.get(split, {}):
        return listed[split][language]
    known = "; ".join(f"{name}: {', '.join(sides)}" for name, sides in listed.items())
    raise UserError(
        f"{manifest}: expected the split {split!r} in the language {language!r}, found "
        f"{known}. Check the pair, the test sets and config/corpora.yaml."
    )
