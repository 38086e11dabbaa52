"""Import of pretrained models, from folder to folder, and comparison with the library."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_csv, write_json
from headcount.base.folders import PRETRAINED_SOURCES, SIDES
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import write_run
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE
from headcount.data.batches import Ids, ParallelText
from headcount.data.fetching.models import RECORD
from headcount.data.sentencepieces import read_marks
from headcount.data.vocabulary import BOS, EOS
from headcount.model.machine import pick_device
from headcount.model.transformer import Transformer, copy_weights, parameter_count
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.progress import CURVE_COLUMNS
from headcount.training.score import mean_loss
from headcount.training.training_run import MASK_COLUMNS, SLOPE_COLUMNS
from headcount_hf.pretrained.families import Config, check_sizes
from headcount_hf.pretrained.library import whole_files
from headcount_hf.pretrained.pieces import Pieces, read_pieces
from headcount_hf.pretrained.segment import (
    EXAMPLES,
    GENERATION,
    LANGUAGE_CODES,
    Placement,
    place_marks,
)
from headcount_hf.pretrained.weights import Imported, Numbering, import_model, number_words

_PAIRS = 8
_LARGEST_GAP = 1e-4
"""Largest difference of scores, as a share of the largest score: 100 times the rounding error."""


def compare_with_library(
    imported: Imported, text: ParallelText, pair: PairFolder | None = None
) -> dict[str, Any]:
    """Return the largest difference from the library's scores, for `import.json`.

    The library's tokeniser reads the lines that `pair` keeps. Without such lines, its module reads
    the first pairs of `text`. Raises UserError for a different id or score.
    """
    import transformers

    version, longest = f"transformers {transformers.__version__}", imported.longest - 2
    lines = list(_read_lines(imported, pair)) if pair and imported.tokeniser else []
    first = list(zip(text.src, text.tgt, strict=True))[:_PAIRS]
    compared = lines or [(src[:longest], tgt[:longest]) for src, tgt in first]
    gaps = [_gap(imported, *ids) for ids in compared if max(map(len, ids)) <= longest]
    gap, size = torch.tensor([(0.0, 0.0), *gaps]).amax(0).tolist()
    if not gap <= _LARGEST_GAP * size:  # nan, too
        raise UserError(
            f"{imported.folder}: expected the scores of {version}, found differences of up to "
            f"{gap:.1e} where scores reach {size:.1f}; this model cannot be imported"
        )
    reader = f"{len(lines)} pairs of lines, by {type(imported.tokeniser).__name__}"
    return {
        "library": version,
        "text": reader if lines else "not compared: no lines were kept when it was cut",
        "pairs": len(gaps),
        "largest_gap": float(f"{gap:.1e}"),
        "largest_score": round(size, 1),
    }


def _read_lines(imported: Imported, pair: PairFolder) -> Iterator[tuple[Ids, Ids]]:
    """Yield lines as our ids, but those with special pieces. Raises UserError for other ids."""
    tokeniser, about, cutters = imported.tokeniser, pair.segmentation(), pair.segmenters()
    src, tgt = (read_marks(about, side) for side in (0, 1))
    ends = {tokeniser.eos_token, tokeniser.unk_token, tokeniser.pad_token}
    hidden = ends.union(src.special, tgt.special) - {*src.words}
    code = src.before if imported.theirs.config.model_type == "marian" else ()
    for lines in about.get(EXAMPLES, ()):
        if any(name in line for name in hidden for line in lines):
            continue
        texts = [side.normalise(line) for side, line in zip(cutters, lines, strict=True)]
        ours = [side.encode(line) for side, line in zip(cutters, lines, strict=True)]
        read = tokeniser(" ".join([*code, texts[0]])), tokeniser(text_target=texts[1])
        sides = zip(("source", "target"), texts, read, _theirs(imported, *ours), strict=True)
        for side, line, expected, ids in sides:
            place = f"{imported.folder}: {side} line {line!r}"
            _check_ids(place, tokeniser, expected["input_ids"], ids)
        yield ours[0], ours[1]


def _theirs(imported: Imported, src: Ids, tgt: Ids) -> tuple[Ids, Ids]:
    """Return the library's ids with ends, and in mBART with the language's code."""
    inputs = [imported.src_rows[i] for i in [*src, EOS]]
    labels = [imported.tgt_rows[i] for i in [*tgt, EOS]]
    is_moved = imported.src_rows[EOS] != imported.tgt_rows[EOS]
    return inputs, [*labels, imported.tgt_rows[BOS]] if is_moved else labels


def _check_ids(line: str, tokeniser: Any, expected: Ids, ours: Ids) -> None:
    """Raise UserError naming the first token of a line that differs."""
    for place, ids in enumerate(zip_longest(expected, ours), start=1):
        if ids[0] != ids[1]:
            names = ["no more" if i is None else tokeniser.convert_ids_to_tokens(i) for i in ids]
            raise UserError(
                f"{line}: token {place}: expected {names[0]!r} ({ids[0]}), as "
                f"{type(tokeniser).__name__} reads it, found {names[1]!r} ({ids[1]}); leave the "
                "line out if its characters are odd, else this model cannot be imported"
            )


@torch.inference_mode()
def _gap(imported: Imported, src: Ids, tgt: Ids) -> tuple[float, float]:
    """Return the largest difference of a score of one pair, and the largest score."""
    model, rows = imported.model, torch.tensor(imported.tgt_rows)
    inputs, labels = (torch.tensor([ids]) for ids in _theirs(imported, src, tgt))
    words = torch.tensor([[BOS, *tgt]])
    states = model.decode(words, model.encode(torch.tensor([[*src, EOS]])))
    known = torch.arange(len(rows)) != BOS  # BOS is not a word of theirs
    scores = model.logits(states)[0][:, known]
    expected = imported.theirs(input_ids=inputs, labels=labels).logits[0, : words.shape[1]]
    expected = expected[:, rows[known]]
    return float((expected - scores).abs().max()), float(expected.abs().max())


def imported_files(folder: Path) -> list[Path]:
    """Return the files that a pretrained model is read from. Raises UserError without a model."""
    Config.read(folder)
    return whole_files(folder, PRETRAINED_SOURCES)


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
    record, search = folder / RECORD, folder / GENERATION  # the search settings of its makers
    known = read_json(record) if record.exists() else {"model": str(folder), "revision": None}
    paths = imported_files(folder)
    facts = {
        "model": known["model"],
        "revision": known["revision"],
        "model_type": Config.read(folder).model_type,
        "files": {p.name: {"sha256": sha256(p), "bytes": p.stat().st_size} for p in paths},
        "generation": read_json(search) if search.exists() else None,
        "stored_as": imported.format,
        "check": check,
    }
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


def _read(folder: Path, pair: PairFolder) -> tuple[Pieces, Placement, Numbering]:
    """Return pieces, marks and ids of a model. Raises UserError for a pair of other pieces."""
    config, about = Config.read(folder), pair.segmentation()
    fault = (
        f"{pair.path}: expected text cut into the pieces of {folder} by scripts/segment.py, found "
    )
    if LANGUAGE_CODES not in about:
        raise UserError(fault + "subwords of a model that was trained here")
    pieces = read_pieces(config, about[LANGUAGE_CODES])
    placement = place_marks(config, pieces, about[LANGUAGE_CODES])
    numbering = number_words(config, pieces.unknown, placement.start, placement.src_end)
    own = pair.vocabularies()
    for side, rows in enumerate(numbering.rows):
        names = pieces.vocabulary(side, rows, Counter()).pieces(range(len(rows)))
        others = own[side].pieces(range(len(own[side])))
        if names != others:
            count = f"{len(others)} others of {SIDES[side]} (expected {len(names)})"
            raise UserError(fault + count)
    return pieces, placement, numbering


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
