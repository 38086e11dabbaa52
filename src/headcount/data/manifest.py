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

Texts = dict[str, dict[str, dict[str, str | None]]]
"""{split: {language: text}}. A text has `file`, its name in the manifest's folder. It may have
`member`, its name in that file, an archive; and `own`, the person's own file it is a copy of."""


class FoundText(NamedTuple):
    """Where one side of a split lies, and what messages call it: one's own file by its path."""

    path: Path
    member: str | None
    shown: str

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
    def facts(name: str) -> dict[str, Any]:
        path = folder / name
        return {"file": name, "sha256": sha256(path), "bytes": path.stat().st_size}

    listed = {
        kind: {
            split: {
                language: facts(text["file"]) | {k: v for k, v in text.items() if v is not None}
                for language, text in sides.items()
            }
            for split, sides in texts.items()
        }
        for kind, texts in (("splits", splits), ("trees", trees))
        if texts is not None
    }
    write_json(folder / NAME, {**about, **listed})


def find_text(manifest: Path, split: str, language: str, trees: bool = False) -> FoundText:
    """Raw file and archive member (None: the whole file) of one side, its checksum verified.

    `trees`: the split is a treebank. A generator lists its trees beside the splits of its text; a
    fetched treebank is a split of its own. Raises UserError if the corpus has no such split or
    language, or if the file is missing or is not the one the manifest was written for.
    """
    try:
        about = read_json(manifest)
        listed = about["splits"] | (about.get("trees", {}) if trees else {})
    except FileNotFoundError:
        raise UserError(f"{manifest}: no such manifest; download its corpus first") from None
    except (ValueError, KeyError, TypeError) as fault:
        raise UserError(
            f"{manifest}: not a manifest ({fault}); delete it and run the download again"
        ) from None
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
