"""Head importance from files to files: a model and the text it was trained on in, a CSV out."""

from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_json
from headcount.base.head_values import read_head_values, write_head_values
from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import ParallelText, read_parallel_text
from headcount.data.vocabulary import Vocabulary
from headcount.heads.importance import measure_importance, normalise_layers
from headcount.model.machine import pick_device
from headcount.store.checkpoint import load_model, model_files, read_facts
from headcount.store.subwords import check_subwords, subword_files


def importance_inputs(model: Path, bpe: Path, settings: ImportanceSettings) -> list[Path]:
    """The files that shape the importance of a model's heads."""
    texts = [bpe / f"{settings.data}.{side}" for side in ("src", "tgt")]
    return [*model_files(model), *subword_files(bpe), *texts]


def write_importance(
    model_folder: Path, bpe: Path, settings: ImportanceSettings, out: Path, origin: dict[str, Any]
) -> None:
    """Write the importance of every head, over a drawn subset of the text and over its two halves.

    `out` is a CSV with the statistics importance, importance_first_half and
    importance_second_half; the halves share no sentence. Beside it goes a JSON of the same name:
    which data, how many sentences, the SHA-256 of the weights, and `origin`. Raises UserError if
    the text has fewer than two sentence pairs or the model knows other words.
    """
    check_subwords(model_folder, bpe)
    smoothing = label_smoothing(model_folder) if settings.loss == "smoothed" else 0.0
    halves = read_halves(bpe, settings)
    model = load_model(model_folder).to(pick_device(settings.device))
    sizes = [len(half) for half in halves]
    with tqdm(total=sum(sizes), unit="sentence", disable=None) as bar:
        parts = [measure_importance(model, h, settings, smoothing, bar.update) for h in halves]
    whole = np.average(parts, axis=0, weights=sizes)
    names = ("importance", "importance_first_half", "importance_second_half")
    values = dict(zip(names, (whole, *parts), strict=True))
    if settings.normalise == "layer_l2":
        values = {name: normalise_layers(part, model.grid) for name, part in values.items()}
    write_head_values(out, model.grid, values)
    facts = {"data": settings.data, "sentences": sum(sizes), "halves": sizes}
    facts["weights"] = sha256(model_folder / "weights.safetensors")
    facts |= {"label_smoothing": smoothing, "provenance": origin}
    write_json(out.with_suffix(".json"), facts)


def read_importance(path: Path, model: Path, grid: HeadGrid) -> np.ndarray:
    """Importance of every head of the model in a folder, [heads] in flat order.

    Raises UserError if the file is another model's: one with other heads, or, by what
    `write_importance` leaves beside it, with other weights. A file that has nothing beside it was
    made by hand, and is for any model with these heads.
    """
    values = read_head_values(path, "importance", grid)
    beside = path.with_suffix(".json")
    if beside.is_file():
        weights = model / "weights.safetensors"
        if read_json(beside).get("weights") != sha256(weights):
            raise UserError(
                f"{path}: is not the importance of the heads of {weights}: {beside.name} names "
                "other weights; give that model's own, or run scripts/importance.py again"
            )
    return values


def read_halves(bpe: Path, settings: ImportanceSettings) -> tuple[ParallelText, ParallelText]:
    """The sentence pairs of a segmented pair on which importance is measured; see `draw_halves`."""
    words = [Vocabulary.load(bpe / f"{side}.vocab") for side in ("src", "tgt")]
    paths = [bpe / f"{settings.data}.{side}" for side in ("src", "tgt")]
    return draw_halves(read_parallel_text(*paths, *words), settings, str(paths[0]))


def draw_halves(
    text: ParallelText, settings: ImportanceSettings, source: str
) -> tuple[ParallelText, ParallelText]:
    """Sentence pairs drawn without repetition, in two halves; the second is the longer if one is.

    A text with fewer pairs than asked for is taken whole. Raises UserError, naming `source`, if
    it has fewer than two.
    """
    if len(text) < 2:
        raise UserError(
            f"{source}: expected at least 2 sentence pairs to measure importance on, found "
            f"{len(text)}; choose other importance.data or look at the text step's counts"
        )
    order = np.random.default_rng(settings.subset_seed).permutation(len(text))
    chosen = order[: settings.sentences].tolist()
    middle = len(chosen) // 2
    first, second = (
        ParallelText([text.src[i] for i in part], [text.tgt[i] for i in part])
        for part in (chosen[:middle], chosen[middle:])
    )
    return first, second


def label_smoothing(model: Path) -> float:
    """The label smoothing that a model was trained with."""
    path = model / "model.json"
    try:
        settings = read_facts(path)["provenance"]["settings"]
        return float(settings["train"]["label_smoothing"])
    except (KeyError, TypeError, ValueError) as fault:
        raise UserError(
            f"{path}: does not say with which label smoothing the model was "
            "trained; set importance.loss: nll"
        ) from fault
