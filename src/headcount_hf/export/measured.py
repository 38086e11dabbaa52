"""BLEU, size and speed of models on this machine, every model in its own program."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headcount.analysis.stats import paired_t
from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_result
from headcount.base.folders import CODES, DESCRIPTION, SEGMENTATION, VOCABULARIES
from headcount.base.folders import WEIGHTS as OUR_WEIGHTS
from headcount.base.settings.decode import FP32, DecodeSettings
from headcount.base.settings.pretrained import WEIGHTS
from headcount.data.bpe import AnySegmenter
from headcount.data.lines import clean_lines
from headcount.data.text import read_clean
from headcount.deployment.export import MARK
from headcount.deployment.speed import time_in_turns
from headcount.scoring.bleu import score_corpus
from headcount.search.translation import Search, open_own_search, translate_lines
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_model import POSITIONS
from headcount_hf.export.ctranslate2_search import CTranslate2Search
from headcount_hf.export.exported import Exported, Sides
from headcount_hf.export.huggingface_search import HuggingFaceSearch
from headcount_hf.pretrained.imports import their_words

COLUMNS = ("model", "program", "compute_type", "heads", "bleu", "megabytes", "sentences_per_s")
COLUMNS += ("low", "high", "repeats", "sentences", "signature")


class Measured(NamedTuple):
    """A model in its own program."""

    folder: Path
    search: Search
    weights: Path
    heads: int | str  # unmasked ones, empty if the folder does not state them


def write_measured(
    folders: list[Path],
    bpe: Path | None,
    texts: tuple[Path, Path],
    decode: DecodeSettings,
    repeats: int,
    compute_types: Sequence[str],
    out: Path,
    origin: dict[str, Any],
) -> list[list[Any]]:
    """Measure models on source and references `texts`, write rows as CSV, and return them."""
    plain = decode.model_copy(update={"length_penalty": 0.0, "device": "cpu"})
    sources, references = read_clean(texts[0]), list(clean_lines(texts[1]))
    if len(sources) != len(references) or not sources:
        raise UserError(
            f"{texts[0]} has {len(sources)} lines, {texts[1]} has {len(references)}; expected as "
            "many on both sides, and at least one"
        )
    models, target = open_models(folders, bpe, plain, compute_types)
    works = [
        [(place, partial(translate_lines, m.search, sources))] for place, m in enumerate(models)
    ]
    timings = list(time_in_turns(works, repeats))
    spelt, rows, seconds = list(map(target.normalise, references)), [], {}
    for place, model in enumerate(models):
        times = [timing[3] for timing in timings if timing[0] == place]
        lines = next(timing[2][0] for timing in timings if timing[0] == place)
        score = score_corpus(lines, spelt, target.language)[0]
        name, facts = model.folder.as_posix(), model.search.facts
        program = facts["engine"], facts.get("compute_type", FP32)
        cells = [score.score, model.weights.stat().st_size / 1e6, *speed(len(sources), times)]
        cells += [repeats, len(sources), score.signature]
        rows.append([name, *program, model.heads, *cells])
        seconds[f"{name} {program[1]}"] = times
    facts = {"beam": plain.beam, "length_penalty": 0.0, "device": "cpu", "threads": plain.threads}
    write_result(out, COLUMNS, rows, {**facts, "seconds": seconds, "provenance": origin})
    return rows


def speed(sentences: int, seconds: Sequence[float]) -> list[float | str]:
    """Return sentences per second, the geometric mean over rounds, and its 95 % t interval."""
    logs = np.log(sentences / np.asarray(seconds))
    ends = (logs.mean(), *paired_t(logs)[:2])
    return ["" if np.isnan(end) else float(np.exp(end)) for end in ends]


def open_models(
    folders: list[Path], bpe: Path | None, decode: DecodeSettings, compute_types: Sequence[str]
) -> tuple[list[Measured], AnySegmenter]:
    """Return the folders, opened on the CPU, and the target's segmenter."""
    own = next((folder for folder in folders if (folder / VOCABULARIES[0]).is_file()), None)
    if bpe is None and own is None:
        raise UserError(
            f"{folders[0]}: expected {VOCABULARIES[0]} in one of the folders, found none; name the "
            "segmented pair with --bpe"
        )
    pair = PairFolder(bpe or own)
    sides = pair.segmenters()
    models = []
    for folder in folders:
        for_ctranslate2 = (folder / CTranslate2Search.weights).is_file()
        kinds = compute_types if for_ctranslate2 else [FP32]
        models += [_open(folder, pair, sides, decode, kind) for kind in kinds]
    return models, sides[1]


def _open(
    folder: Path, pair: PairFolder, sides: Sides, decode: DecodeSettings, compute_type: str
) -> Measured:
    """Return a folder in its program, by the files in it."""
    if (folder / DESCRIPTION).is_file():
        search = open_own_search(ModelFolder(folder), pair, (), decode)
        return Measured(folder, search, folder / OUR_WEIGHTS, search.model.grid.size)
    search = open_exported(folder, pair, sides, decode, compute_type)
    heads = _facts(folder).get("heads")
    weights = folder / search.weights
    return Measured(folder, search, weights, sum(map(sum, heads.values())) if heads else "")


def open_exported(
    folder: Path, pair: PairFolder, sides: Sides, decode: DecodeSettings, compute_type: str = FP32
) -> Exported:
    """Return an exported folder in its program. Raises UserError for the subwords of another."""
    _check_subwords(folder, pair)
    positions = _facts(folder).get("positions", POSITIONS)
    if (folder / CTranslate2Search.weights).is_file():
        return CTranslate2Search(folder, sides, decode, positions, compute_type)
    if not (folder / WEIGHTS).is_file():
        expected = f"{DESCRIPTION}, {CTranslate2Search.weights} or {WEIGHTS}"
        raise UserError(f"{folder}: expected a model, {expected}, found none")
    if (folder / SEGMENTATION).is_file():  # subwords and ids are ours
        rows = tuple(list(range(len(side.vocabulary))) for side in sides)
    else:
        rows = their_words(folder, pair, exact=False)
    return HuggingFaceSearch(folder, sides, decode, positions, rows)


def _facts(folder: Path) -> dict[str, Any]:
    return read_json(folder / MARK) if (folder / MARK).is_file() else {}


def _check_subwords(folder: Path, pair: PairFolder) -> None:
    """Raise UserError unless the subwords beside an exported model are the pair's."""
    for name in (*CODES, *VOCABULARIES):
        own, given = folder / name, pair.path / name
        if own.is_file() and not (given.is_file() and sha256(own) == sha256(given)):
            raise UserError(
                f"{given}: expected the subwords of the model in {folder}, found others; name "
                "its segmented pair with --bpe, and measure models of other subwords separately"
            )
