"""Pretrained models from folder to folder."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.folders import SIDES
from headcount.base.settings.model import ModelSettings
from headcount.model.transformer import Transformer, copy_weights, parameter_count
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.check import compare_with_library
from headcount_hf.pretrained.families import CONFIG, Config, check_sizes
from headcount_hf.pretrained.languages import Placement, place_marks
from headcount_hf.pretrained.pieces import Pieces, read_pieces
from headcount_hf.pretrained.segment import LANGUAGE_CODES
from headcount_hf.pretrained.weight_map import Imported, Numbering, import_model, number_words
from headcount_hf.pretrained.weights_file import WEIGHTS, weights_file


def imported_files(folder: Path) -> list[Path]:
    """What is read of the folder of a pretrained model. Raises UserError where there is no such."""
    return [folder / CONFIG, weights_file(folder), *read_pieces(Config.read(folder)).files]


def generation_file(folder: Path) -> list[Path]:
    """What tells how the makers of a model search for translations, in a list; empty without it."""
    return [path for path in [folder / "generation_config.json"] if path.exists()]


def their_words(folder: Path, pair: PairFolder) -> tuple[list[int], list[int]]:
    """For each id of source and target in a pair that of a pretrained model.

    Raises UserError unless the pair was cut into its pieces.
    """
    numbering = _read(folder, pair)[2]
    return numbering.src_rows, numbering.tgt_rows


def import_for(folder: Path, pair: PairFolder) -> Imported:
    """The model in a folder, for a pair that is cut into its pieces.

    Standard error is told if weights were stored in another format than float32. Raises UserError
    for what ours cannot express, for damaged files, and if the pair was cut into other pieces.
    """
    pieces, placement, _ = _read(folder, pair)
    imported = import_model(folder, pieces.unknown, placement.start, placement.src_end)
    if imported.format != "float32":
        print(f"{folder / WEIGHTS}: {imported.format}, read as float32", file=sys.stderr)
    return imported


def write_imported(folder: Path, pair: PairFolder, out: Path, origin: dict[str, Any]) -> None:
    """Write a pretrained model as one of ours, which belongs to a pair cut into its pieces.

    Raises UserError as `import_for` does.
    """
    imported = import_for(folder, pair)
    facts = {"parameters": parameter_count(imported.model), "stored_as": imported.format}
    facts |= {"provenance": origin, **pair.subwords()}
    facts["check"] = compare_with_library(folder, imported, pair.read("dev"), pair)
    weights = dict(imported.model.named_parameters())
    ModelFolder(out).save(imported.model, weights, facts)


def with_settings(model: Transformer, settings: ModelSettings) -> Transformer:
    """The same model with an experiment's settings, whose dropout may be another."""
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
    check = compare_with_library(folder, imported, pair.first_pairs("dev", None), pair)
    print(f"imported {folder}: {check}", file=sys.stderr)
    return with_settings(imported.model, settings)


def _read(folder: Path, pair: PairFolder) -> tuple[Pieces, Placement, Numbering]:
    """What a pretrained model says of subwords, in the languages of a pair; its pieces are these.

    Raises UserError if the pair was cut into others.
    """
    config = Config.read(folder)
    pieces, about = read_pieces(config), pair.segmentation()
    if LANGUAGE_CODES not in about:
        raise _other_pieces(folder, pair, "those of a model that was trained here")
    placement = place_marks(config, pieces, about[LANGUAGE_CODES])
    numbering = number_words(config, pieces.unknown, placement.start, placement.src_end)
    found = pair.vocabularies()
    for side, rows in enumerate((numbering.src_rows, numbering.tgt_rows)):
        names = pieces.vocabulary(side, rows, Counter()).pieces(range(len(rows)))
        others = found[side].pieces(range(len(found[side])))
        if names != others:
            what = f"{len(others)} others of {SIDES[side]}"
            raise _other_pieces(folder, pair, f"{what} (expected {len(names)})")
    return pieces, placement, numbering


def _other_pieces(folder: Path, pair: PairFolder, found: str) -> UserError:
    return UserError(
        f"{pair.path}: expected text cut into the pieces of {folder}, found {found}; "
        "run scripts/segment.py"
    )
