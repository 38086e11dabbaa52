"""The manifest of a corpus: the raw file of every side of every split, and its checksum."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError, reading
from headcount.base.files import read_json, sha256, write_json
from headcount.data.lines import FoundText

NAME = "manifest.json"

Row = dict[str, Any]
"""A file: `file`, its name in the manifest's folder. It may have `member`, its name in that file,
an archive; `own`, the person's own file that it is a copy of; and the way to read its sentences:
`format`, `column`, `separator`, `translator`, `language`."""

Texts = dict[str, dict[str, Row | dict[str, list[Row]]]]
"""{split: {language: text}}. A text is one file, or several: its `parts` or its `references`."""


def write_manifest(
    folder: Path, about: Mapping[str, Any], splits: Texts, trees: Texts | None = None
) -> None:
    """Write `about`, splits and treebanks, with SHA-256 and size of each file in `folder`."""

    @cache
    def facts(name: str) -> Row:
        path = folder / name
        return {"file": name, "sha256": sha256(path), "bytes": path.stat().st_size}

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(filled, value))
        if not isinstance(value, dict):
            return value
        known = {key: filled(inner) for key, inner in value.items() if inner is not None}
        return facts(known["file"]) | known if "file" in known else known

    content = {**about, "splits": splits} | ({} if trees is None else {"trees": trees})
    write_json(folder / NAME, {key: filled(value) for key, value in content.items()})


def read_manifest(manifest: Path) -> dict[str, Any]:
    """Return the content of a manifest. Raises UserError if there is none, or another file."""
    with reading(manifest, "scripts/download.py"):
        about = read_json(manifest)
        about["splits"].items()
    return about


def find_text(manifest: Path, split: str, language: str, trees: bool = False) -> FoundText:
    """Return the raw text of a side, or of a treebank of a generated corpus if `trees`."""
    about = read_manifest(manifest)
    listed = about["splits"] | (about.get("trees", {}) if trees else {})
    return find_file(manifest, _side(manifest, listed, split, language))


def find_side(manifest: Path, split: str, language: str) -> list[list[FoundText]]:
    """Return the files of one side of a split: a list of parts, each a list of references."""
    side = _side(manifest, read_manifest(manifest)["splits"], split, language)
    if "references" in side:
        return [[find_file(manifest, row) for row in side["references"]]]
    return [[find_file(manifest, row)] for row in side.get("parts", [side])]


def find_file(manifest: Path, row: Row) -> FoundText:
    """Return the file of a row. Raises UserError if it is missing or has changed."""
    path = manifest.parent / row["file"]
    if not path.is_file():
        raise UserError(f"{path}: this raw file is missing; delete {manifest} and run again")
    if (actual := sha256(path)) != row["sha256"]:
        change = f"changed since its download, from SHA-256 {row['sha256']} to {actual}"
        raise UserError(f"{path}: {change}; delete {manifest} and run again")
    ways = {key: row[key] for key in FoundText._fields if key in row}
    return FoundText(path, **ways)


def _side(manifest: Path, listed: Mapping[str, Any], split: str, language: str) -> dict[str, Any]:
    if language in listed.get(split, {}):
        return listed[split][language]
    known = "; ".join(f"{name}: {', '.join(sides)}" for name, sides in listed.items())
    wanted = f"the split {split!r} in the language {language!r}"
    raise UserError(f"{manifest}: expected {wanted}, found {known}; see config/corpora.yaml")
