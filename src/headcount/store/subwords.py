"""Which subwords a model was trained on: its ids mean nothing under any others."""

from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import sha256
from headcount.store.checkpoint import read_facts

Checksums = dict[str, dict[str, str]]  # SHA-256 by key of model.json and by side

_KEYS = {"vocabularies": ("vocab", "vocabulary"), "codes": ("codes", "BPE codes")}
"""Keys of model.json: how the files of both sides end, and what a person calls them."""
_SIDES = ("src", "tgt")


def subword_files(bpe: Path) -> list[Path]:
    """The files of a segmented pair that say how words become ids."""
    return [bpe / f"{side}.{end}" for end, _ in _KEYS.values() for side in _SIDES]


def subword_checksums(bpe: Path) -> Checksums:
    """What model.json says of these files."""
    return {
        key: {side: sha256(bpe / f"{side}.{end}") for side in _SIDES}
        for key, (end, _) in _KEYS.items()
    }


def model_subwords(folder: Path) -> Checksums:
    """What the model.json in a folder says of them. Raises UserError if that is missing."""
    path = folder / "model.json"
    facts = read_facts(path)
    for key, (_, words) in _KEYS.items():
        found = facts.get(key)
        if not isinstance(found, dict) or set(found) != set(_SIDES):
            raise UserError(
                f"{path}: damaged, or written by an older version: expected the checksums of the "
                f"{words} of both sides under {key!r}, found {str(found)[:60]}; train the model "
                "again"
            )
    return {key: facts[key] for key in _KEYS}


def check_subwords(folder: Path, bpe: Path) -> None:
    """Raise UserError unless the model in a folder was trained on the subwords in `bpe`."""
    trained, found = model_subwords(folder), subword_checksums(bpe)
    for key, (end, words) in _KEYS.items():
        for side in _SIDES:
            if trained[key][side] != found[key][side]:
                raise UserError(
                    f"{bpe / side}.{end}: not the {words} that the model in {folder} was trained "
                    "on; name the folder it was trained on, or train it again"
                )
