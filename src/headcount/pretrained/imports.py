"""Pretrained models from folder to folder."""

from collections import Counter
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.data.sentencepieces import UNIT
from headcount.model.transformer import parameter_count
from headcount.pretrained.families import CONFIG, Config
from headcount.pretrained.marian import MarianPieces
from headcount.pretrained.weight_map import WEIGHTS, import_model, their_rows
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def imported_files(folder: Path) -> list[Path]:
    """What is read of the folder of a Marian model."""
    return [folder / CONFIG, folder / WEIGHTS, *MarianPieces(folder).files]


def their_words(folder: Path, pair: PairFolder) -> tuple[list[int], list[int]]:
    """For each id of source and target in a pair that of a Marian model.

    Raises UserError unless the pair is cut into its pieces.
    """
    pieces, config = MarianPieces(folder), Config.read(folder)
    for side, ours in enumerate(pair.vocabularies()):
        theirs = pieces.vocabulary(side, Counter())
        if [piece for piece, _ in ours.counts] != [piece for piece, _ in theirs.counts]:
            raise UserError(
                f"{pair.path}: expected the pieces of {folder}, found others; name the folder that "
                "the model was imported from"
            )
    start = config["decoder_start_token_id"]
    src, tgt = (their_rows(config, n, pieces.unknown, start) for n in config.vocabulary_sizes)
    return src, tgt


def write_imported(folder: Path, pair: PairFolder, out: Path, origin: dict[str, Any]) -> None:
    """Write a Marian model as one of ours, which belongs to a pair cut into its pieces.

    Raises UserError for what ours cannot express, for damaged files, and if the pair was cut into
    other pieces.
    """
    imported = import_model(folder, MarianPieces(folder).unknown)
    words = [len(vocabulary) for vocabulary in pair.vocabularies()]
    expected = [len(imported.src_rows), len(imported.tgt_rows)]
    if pair.segmentation().get("unit") != UNIT or words != expected:
        raise UserError(
            f"{pair.path}: expected text cut into the pieces of {folder}, {expected} of source and "
            f"target, found {words} others; run scripts/segment.py"
        )
    facts = {"parameters": parameter_count(imported.model), "provenance": origin}
    facts |= pair.subwords()
    weights = dict(imported.model.named_parameters())
    ModelFolder(out).save(imported.model, weights, facts)
