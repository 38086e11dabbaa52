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
from headcount.data.batches import ParallelText
from headcount.heads.importance import measure_importance, normalise_layers
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def write_importance(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the importance of every head, over a drawn subset of the text and over its two halves.

    `out` is a CSV with the statistics importance, importance_first_half and
    importance_second_half; the halves share no sentence. Beside it goes a JSON of the same name:
    which data, how many sentences, the SHA-256 of the weights, and `origin`. Raises UserError if
    the text has fewer than two sentence pairs or the model knows other words.
    """
    folder.check(pair)
    smoothing = folder.label_smoothing() if settings.loss == "smoothed" else 0.0
    halves = read_halves(pair, settings)
    model = folder.load(settings.device)
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
    facts["weights"] = sha256(folder.weights)
    facts |= {"label_smoothing": smoothing, "provenance": origin}
    write_json(out.with_suffix(".json"), facts)


def read_importance(path: Path, folder: ModelFolder, grid: HeadGrid) -> np.ndarray:
    """Importance of every head of the model in a folder, [heads] in flat order.

    Raises UserError if the file is another model's: one with other heads, or, by what
    `write_importance` leaves beside it, with other weights. A file that has nothing beside it was
    made by hand, and is for any model with these heads.
    """
    values = read_head_values(path, "importance", grid)
    beside = path.with_suffix(".json")
    if beside.is_file() and read_json(beside).get("weights") != sha256(folder.weights):
        raise UserError(
            f"{path}: is not the importance of the heads of {folder.weights}: {beside.name} "
            "names other weights; give that model's own, or run scripts/importance.py again"
        )
    return values


def read_halves(
    pair: PairFolder, settings: ImportanceSettings
) -> tuple[ParallelText, ParallelText]:
    """The sentence pairs of a segmented pair on which importance is measured; see `draw_halves`."""
    return draw_halves(pair.read(settings.data), settings, str(pair.texts(settings.data)[0]))


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
