"""Import of pretrained models, from folder to folder, and comparison with the library."""

import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import yaml

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_csv, write_json
from headcount.base.folders import SIDES
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import write_run
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE
from headcount.data.batches import Ids, ParallelText
from headcount.data.fetching.models import RECORD
from headcount.data.vocabulary import BOS, EOS
from headcount.data.words import restore
from headcount.model.machine import pick_device
from headcount.model.transformer import Transformer, parameter_count
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.progress import CURVE_COLUMNS
from headcount.training.score import mean_loss
from headcount.training.training_run import MASK_COLUMNS, SLOPE_COLUMNS
from headcount_hf.pretrained.families import Config, check_sizes
from headcount_hf.pretrained.library import whole_files
from headcount_hf.pretrained.pieces import read_pieces
from headcount_hf.pretrained.segment import COMPARED, GENERATION, LANGUAGE_CODES, place_marks
from headcount_hf.pretrained.weights import Imported, Numbering, Rows, import_model

_PAIRS = 8
_LARGEST_GAP = 1e-4
"""Largest difference of scores, as a share of the largest score: 100 times the rounding error."""


def compare_with_library(imported: Imported, text: ParallelText) -> dict[str, Any]:
    """Return the largest difference of scores of the first pairs. Raises UserError for others."""
    import transformers

    version, longest = f"transformers {transformers.__version__}", imported.longest - 2
    pairs = islice(zip(text.src, text.tgt, strict=True), _PAIRS)
    gaps = [_gap(imported, src[:longest], tgt[:longest]) for src, tgt in pairs]
    gap, size = torch.tensor([(0.0, 0.0), *gaps]).amax(0).tolist()
    if not gap <= _LARGEST_GAP * size:  # nan, too
        raise UserError(
            f"{imported.folder}: expected the scores of {version}, found differences of up to "
            f"{gap:.1e} where scores reach {size:.1f}; this model cannot be imported"
        )
    return {
        "library": version,
        "pairs": len(gaps),
        "largest_gap": float(f"{gap:.1e}"),
        "largest_score": round(size, 1),
    }


@torch.inference_mode()
def _gap(imported: Imported, src: Ids, tgt: Ids) -> tuple[float, float]:
    """Return the largest difference of a score of one pair, and the largest score."""
    src_rows, rows = map(torch.tensor, (imported.src_rows, imported.tgt_rows))
    read, words = torch.tensor([[*src, EOS]]), torch.tensor([[BOS, *tgt]])
    known = torch.arange(len(rows)) != BOS  # BOS is not a word of theirs
    model = imported.model
    scores = model.logits(model.decode(words, model.encode(read)))[0][:, known]
    given = {"input_ids": src_rows[read], "decoder_input_ids": rows[words]}
    expected = imported.theirs(**given).logits[0][:, rows[known]]
    return float((expected - scores).abs().max()), float(expected.abs().max())


def imported_files(folder: Path) -> list[Path]:
    """Return the files that a pretrained model is read from. Raises UserError without a model."""
    Config.read(folder)
    return whole_files(folder)


def their_words(folder: Path, pair: PairFolder, exact: bool = True) -> Rows:
    """Return the pretrained model's id for every id of source and target of a pair."""
    return _read(folder, pair, exact)[-1]


def import_for(
    folder: Path, pair: PairFolder, settings: ModelSettings | None = None
) -> tuple[Imported, dict[str, Any]]:
    """Return the model in a folder, with the dropout of the settings, and its comparison."""
    if settings:
        check_sizes(folder, settings)
    imported = import_model(*_read(folder, pair)[:2], settings)
    check = compare_with_library(imported, pair.read("dev"))
    return imported, check | {"text": pair.segmentation()[COMPARED]}


def write_imported(folder: Path, pair: PairFolder, out: Path, origin: dict[str, Any]) -> None:
    """Write a pretrained model as one of ours. Raises UserError as `import_for` does."""
    imported, check = import_for(folder, pair)
    facts = {"parameters": parameter_count(imported.model), "provenance": origin}
    facts |= {**pair.subwords(), "check": check}
    ModelFolder(out).save(imported.model, dict(imported.model.named_parameters()), facts)


def imported_start(folder: Path, pair: PairFolder, settings: ModelSettings) -> Transformer:
    """Return an imported model to start training from, with the dropout of the settings."""
    imported, check = import_for(folder, pair, settings)
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
    """Write the pretrained model in `folder` to `out` as an untrained run."""
    imported, check = import_for(folder, pair, settings)
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
    record, search = folder / RECORD, folder / GENERATION  # the search settings of its makers
    known = read_json(record) if record.exists() else {"model": str(folder), "revision": None}
    paths = imported_files(folder)
    facts = {
        "model": known["model"],
        "revision": known["revision"],
        "model_type": Config.read(folder).model_type,
        "files": {p.name: {"sha256": sha256(p), "bytes": p.stat().st_size} for p in paths},
        "generation": read_json(search) if search.exists() else None,
        "check": check,
    }
    write_json(out / "import.json", facts)


def _read(folder: Path, pair: PairFolder, exact: bool = True) -> tuple[Config, Numbering, Rows]:
    """Return config and ids of a model, and of a pair. Raises UserError for other pieces."""
    config, about = Config.read(folder), pair.segmentation()
    fault = (
        f"{pair.path}: expected text cut into the pieces of {folder} by scripts/segment.py, found "
    )
    if LANGUAGE_CODES not in about:
        raise UserError(fault + "subwords of a model that was trained here")
    pieces = read_pieces(config)
    numbering = place_marks(config, pieces, about[LANGUAGE_CODES])[1]
    sides, expected = [], numbering.rows
    for side, words in enumerate(pair.vocabularies()):
        known = {f"<row {row}>": row for row in expected[side]} | pieces.sides[side].ids
        names = map(restore, words.pieces(range(4, len(words))))
        sides.append([*expected[side][:4], *map(known.get, names)])
        if None in sides[side] or exact and sides[side] != expected[side]:
            raise UserError(fault + f"others of {SIDES[side]}")
    return config, numbering, (sides[0], sides[1])


def describe(folder: Path, hub: str | None = None, commit: str | None = None) -> Iterator[str]:
    """Yield YAML about the model in a folder, from `commit` of the hub if that is given."""
    defaults = ModelSettings().model_dump()
    sizes = Config.read(folder).settings().model_dump(exclude={"preset", "d_head"})
    name = re.sub("[^A-Za-z0-9]", "_", folder.resolve().name)
    terms = dict.fromkeys(("licence", "citation"), "see the model card")
    place = {"hub": hub, "revision": commit} if hub else {"path": str(folder)}
    files = {path.name: sha256(path) for path in imported_files(folder)}
    yield "# in config/models.yaml"
    yield yaml.safe_dump({name: {**terms, **place, "files": files}}, sort_keys=False)
    changed = {key: value for key, value in sizes.items() if value != defaults[key]}
    settings = {"text": {"normal_form": "none"}, "model": {"imported": name, **changed}}
    yield "# in config/<experiment>.yaml"
    yield yaml.safe_dump(settings, sort_keys=False)
