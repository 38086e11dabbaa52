"""Pretrained models from folder to folder."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.folders import PRETRAINED_SOURCES, SIDES
from headcount.base.settings.model import ModelSettings
from headcount.model.transformer import Transformer, copy_weights, parameter_count
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.check import compare_with_library
from headcount_hf.pretrained.families import Config, check_sizes
from headcount_hf.pretrained.languages import Placement, place_marks
from headcount_hf.pretrained.library import input_files, no_weights
from headcount_hf.pretrained.pieces import Pieces, read_pieces
from headcount_hf.pretrained.segment import LANGUAGE_CODES
from headcount_hf.pretrained.weights import Imported, Numbering, import_model, number_words


def imported_files(folder: Path) -> list[Path]:
    """Return the files that a pretrained model is read from. Raises UserError without a model."""
    Config.read(folder)
    found = input_files(folder, PRETRAINED_SOURCES)
    if not any(path.suffix == ".safetensors" for path in found):
        raise no_weights(folder)
    return found


def their_words(folder: Path, pair: PairFolder) -> tuple[list[int], list[int]]:
    """Return for each id of source and target in a pair the id in a pretrained model.

    Raises UserError unless the pair was cut into its pieces.
    """
    numbering = _read(folder, pair)[-1]
    return numbering.src_rows, numbering.tgt_rows


def import_for(folder: Path, pair: PairFolder) -> Imported:
    """Return the model in a folder, for a pair that is cut into its pieces.

    Standard error is told if weights were stored in another format than float32. Raises UserError
    for what ours cannot express, for damaged files, and if the pair was cut into other pieces.
    """
    pieces, placement, _ = _read(folder, pair)
    imported = import_model(folder, pieces.unknown, placement.start, placement.src_end)
    if imported.format != "float32":
        print(f"{folder}: {imported.format}, read as float32", file=sys.stderr)
    return replace(imported, tokeniser=pieces.tokeniser)


def write_imported(folder: Path, pair: PairFolder, out: Path, origin: dict[str, Any]) -> None:
    """Write a pretrained model as one of ours, which belongs to a pair cut into its pieces.

    Raises UserError as `import_for` does.
    """
    imported = import_for(folder, pair)
    facts = {"parameters": parameter_count(imported.model), "stored_as": imported.format}
    facts |= {"provenance": origin, **pair.subwords()}
    facts["check"] = compare_with_library(imported, pair.read("dev"), pair)
    weights = dict(imported.model.named_parameters())
    ModelFolder(out).save(imported.model, weights, facts)


def with_settings(model: Transformer, settings: ModelSettings) -> Transformer:
    """Return the same model with an experiment's settings, whose dropout may be another."""
    sizes = model.src_embedding.num_embeddings, model.tgt_embedding.num_embeddings
    ours = Transformer(settings, *sizes, model.own_src_embedding is None)
    copy_weights(ours, dict(model.named_parameters()))
    return ours.eval()


def imported_start(folder: Path, pair: PairFolder, settings: ModelSettings) -> Transformer:
    """Return an imported model to start training from.

    Raises UserError where the settings have other sizes, and where scores are not the library's.
    """
    check_sizes(folder, settings)
    imported = import_for(folder, pair)
    check = compare_with_library(imported, pair.first_pairs("dev", None), pair)
    print(f"imported {folder}: {check}", file=sys.stderr)
    return with_settings(imported.model, settings)


def _read(folder: Path, pair: PairFolder) -> tuple[Pieces, Placement, Numbering]:
    """Return what a pretrained model says of subwords, in the languages of a pair.

    Raises UserError unless the pair was cut into its pieces.
    """
    config, about = Config.read(folder), pair.segmentation()
    if LANGUAGE_CODES not in about:
        raise _other_pieces(folder, pair, "those of a model that was trained here")
    pieces = read_pieces(config, about[LANGUAGE_CODES])
    placement = place_marks(config, pieces, about[LANGUAGE_CODES])
    numbering = number_words(config, pieces.unknown, placement.start, placement.src_end)
    own = pair.vocabularies()
    for side, rows in enumerate((numbering.src_rows, numbering.tgt_rows)):
        names = pieces.vocabulary(side, rows, Counter()).pieces(range(len(rows)))
        others = own[side].pieces(range(len(own[side])))
        if names != others:
            what = f"{len(others)} others of {SIDES[side]}"
            raise _other_pieces(folder, pair, f"{what} (expected {len(names)})")
    return pieces, placement, numbering


def _other_pieces(folder: Path, pair: PairFolder, found: str) -> UserError:
    return UserError(
        f"{pair.path}: expected text cut into the pieces of {folder}, found {found}; "
        "run scripts/segment.py"
    )
