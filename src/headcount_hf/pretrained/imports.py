"""Import of pretrained models, from folder to folder."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_csv, write_json
from headcount.base.folders import PRETRAINED_SOURCES, SIDES
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import write_run
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE
from headcount.data.fetching.models import RECORD
from headcount.model.machine import pick_device
from headcount.model.transformer import Transformer, copy_weights, parameter_count
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.progress import CURVE_COLUMNS
from headcount.training.score import mean_loss
from headcount.training.training_run import MASK_COLUMNS, SLOPE_COLUMNS
from headcount_hf.pretrained.check import compare_with_library
from headcount_hf.pretrained.families import Config, check_sizes
from headcount_hf.pretrained.languages import GENERATION, Placement, place_marks
from headcount_hf.pretrained.library import input_files, no_weights
from headcount_hf.pretrained.pieces import Pieces, read_pieces
from headcount_hf.pretrained.segment import LANGUAGE_CODES
from headcount_hf.pretrained.weights import Imported, Numbering, import_model, number_words


def imported_files(folder: Path) -> list[Path]:
    """Return the files that a pretrained model is read from. Raises UserError without a model."""
    Config.read(folder)
    paths = input_files(folder, PRETRAINED_SOURCES)
    if not any(path.suffix == ".safetensors" for path in paths):
        raise no_weights(folder)
    return paths


def their_words(folder: Path, pair: PairFolder) -> tuple[list[int], list[int]]:
    """Return the pretrained model's id for every id of source and target of a pair."""
    return _read(folder, pair)[-1].rows


def import_for(folder: Path, pair: PairFolder) -> Imported:
    """Return the model in a folder. Raises UserError for a pair of other pieces."""
    pieces, placement, _ = _read(folder, pair)
    imported = import_model(folder, pieces.unknown, placement.start, placement.src_end)
    if imported.format != "float32":
        print(f"{folder}: {imported.format}, read as float32", file=sys.stderr)
    return replace(imported, tokeniser=pieces.tokeniser)


def write_imported(folder: Path, pair: PairFolder, out: Path, origin: dict[str, Any]) -> None:
    """Write a pretrained model as one of ours. Raises UserError as `import_for` does."""
    imported = import_for(folder, pair)
    facts = {"parameters": parameter_count(imported.model), "stored_as": imported.format}
    facts |= {"provenance": origin, **pair.subwords()}
    facts["check"] = compare_with_library(imported, pair.read("dev"), pair)
    ModelFolder(out).save(imported.model, dict(imported.model.named_parameters()), facts)


def imported_start(folder: Path, pair: PairFolder, settings: ModelSettings) -> Transformer:
    """Return an imported model to start training from, with the dropout of the settings."""
    imported, check = _import_checked(folder, pair, settings)
    print(f"imported {folder}: {check}", file=sys.stderr)
    return imported.model


def write_imported_run(
    folder: Path,
    pair: PairFolder,
    settings: ModelSettings,
    train: TrainSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the pretrained model in `folder` to `out` as an untrained run `baseline`.

    It has the files of a training, with one row in curves.csv, and import.json with the origin and
    the comparison with the library. `train` gives device and batch budget.
    Raises UserError as `imported_start` does.
    """
    imported, check = _import_checked(folder, pair, settings)
    model = imported.model.to(pick_device(train.device))
    loss = mean_loss(model, pair.read("dev"), train.batch_tokens)
    row = dict.fromkeys(CURVE_COLUMNS) | {"step": 0, "epoch": 0, "dev_loss": loss, "seconds": 0}
    write_csv(out / "curves.csv", CURVE_COLUMNS, [[row[name] for name in CURVE_COLUMNS]])
    write_csv(out / "masks.csv", MASK_COLUMNS, [])
    write_csv(out / "slopes.csv", SLOPE_COLUMNS, [])
    write_run(out, BASELINE)
    facts = {"parameters": parameter_count(model), "update": 0, "dev_loss": loss}
    facts |= {**pair.subwords(), "provenance": origin}
    ModelFolder(out / "model").save(model, dict(model.named_parameters()), facts)
    facts = _source(folder) | {"stored_as": imported.format, "check": check}
    write_json(out / "import.json", facts)


def _import_checked(
    folder: Path, pair: PairFolder, settings: ModelSettings
) -> tuple[Imported, dict[str, Any]]:
    """Return the model with these settings, whose dropout may differ, and its comparison."""
    check_sizes(folder, settings)
    imported = import_for(folder, pair)
    check = compare_with_library(imported, pair.first_pairs("dev", None), pair)
    old = imported.model
    sizes = old.src_embedding.num_embeddings, old.tgt_embedding.num_embeddings
    model = Transformer(settings, *sizes, old.own_src_embedding is None)
    copy_weights(model, dict(old.named_parameters()))
    return replace(imported, model=model.eval()), check


def _source(folder: Path) -> dict[str, Any]:
    """Return where a model comes from, its files, and its makers' search settings."""
    record, search = folder / RECORD, folder / GENERATION
    known = read_json(record) if record.exists() else {"model": str(folder), "revision": None}
    return {
        "model": known["model"],
        "revision": known["revision"],
        "model_type": Config.read(folder).model_type,
        "files": {
            path.name: {"sha256": sha256(path), "bytes": path.stat().st_size}
            for path in imported_files(folder)
        },
        "generation": read_json(search) if search.exists() else None,
    }


def _read(folder: Path, pair: PairFolder) -> tuple[Pieces, Placement, Numbering]:
    """Return pieces, marks and ids of a model. Raises UserError for a pair of other pieces."""
    config, about = Config.read(folder), pair.segmentation()
    if LANGUAGE_CODES not in about:
        raise _other_pieces(folder, pair, "subwords of a model that was trained here")
    pieces = read_pieces(config, about[LANGUAGE_CODES])
    placement = place_marks(config, pieces, about[LANGUAGE_CODES])
    numbering = number_words(config, pieces.unknown, placement.start, placement.src_end)
    own = pair.vocabularies()
    for side, rows in enumerate(numbering.rows):
        names = pieces.vocabulary(side, rows, Counter()).pieces(range(len(rows)))
        others = own[side].pieces(range(len(own[side])))
        if names != others:
            wrong = f"{len(others)} others of {SIDES[side]} (expected {len(names)})"
            raise _other_pieces(folder, pair, wrong)
    return pieces, placement, numbering


def _other_pieces(folder: Path, pair: PairFolder, wrong: str) -> UserError:
    return UserError(
        f"{pair.path}: expected text cut into the pieces of {folder}, found {wrong}; "
        "run scripts/segment.py"
    )


def describe(folder: Path, hub: str | None = None, commit: str | None = None) -> Iterator[str]:
    """Yield YAML about the model in a folder, from `commit` of the hub if that is given."""
    defaults = ModelSettings().model_dump()
    sizes = Config.read(folder).settings().model_dump(exclude={"preset", "d_head"})
    name = re.sub("[^A-Za-z0-9]", "_", folder.resolve().name)
    yield "# in config/models.yaml"
    yield from [f"{name}:", "  licence: see the model card", "  citation: see the model card"]
    yield from [f"  hub: {hub}", f"  revision: {commit}"] if hub else [f"  path: {folder}"]
    yield "  files:"
    yield from (f"    {path.name}: {sha256(path)}" for path in imported_files(folder))
    yield "# in config/<experiment>.yaml"
    yield from ["text: {normal_form: none}", "model:", f"  imported: {name}"]
    for key, value in sizes.items():
        if value != defaults[key]:
            yield f"  {key}: {str(value).lower() if isinstance(value, bool) else value}"
