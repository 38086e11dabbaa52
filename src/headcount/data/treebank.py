"""Where the raw file of a treebank lies, by the manifest of what generated or fetched it."""

from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256
from headcount.data.manifest import FoundText, find_text


def find_trees(manifest: Path, treebank: str, language: str) -> FoundText:
    """CoNLL-U file of a treebank in a language, its checksum verified.

    A generator lists its trees beside the splits of its text; a fetched treebank is a split of its
    own. Raises UserError if there is no such treebank or its file has changed.
    """
    generated = read_json(manifest).get("trees", {}) if manifest.is_file() else {}
    if treebank not in generated:
        return find_text(manifest, treebank, language)
    entry = generated[treebank].get(language)
    path = manifest.parent / entry["file"] if entry else None
    if path is None or not path.is_file() or sha256(path) != entry["sha256"]:
        raise UserError(
            f"{manifest}: expected trees {treebank} in {language}, found none, or changed ones; "
            f"delete {manifest} and run again"
        )
    return FoundText(path, None, str(path))
