"""Sentence pairs drawn from a text, and files of what is measured on them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from headcount.base.errors import UserError
from headcount.base.files import sha256, write_result
from headcount.base.head_values import COLUMNS, Statistics, head_rows
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.model.machine import batches_of
from headcount.model.transformer import Transformer
from headcount.model.units import UnitTransformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

DRAW_SEED = 1  # not the run's, so that all runs are measured on the same sentence pairs

Done = Callable[[int], object]  # receives the number of sentences just finished
# Returns statistics, [heads] by name, and facts of a model, and moves the progress bar.
Measurement = Callable[
    [Transformer, ParallelText, ImportanceSettings, tqdm], tuple[Statistics, dict[str, Any]]
]


def read_drawn(pair: PairFolder, settings: ImportanceSettings) -> ParallelText:
    """Return the sentence pairs on which importance is measured, all pairs of a short text."""
    text = pair.read(settings.data)
    if len(text) < 2:
        raise UserError(
            f"{pair.texts(settings.data)[0]}: expected at least 2 sentence pairs, found "
            f"{len(text)}; choose other importance.data"
        )
    order = np.random.default_rng(DRAW_SEED).permutation(len(text))
    return text.part(order[: settings.sentences].tolist())


def write_measured(
    measure: Measurement,
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
    units: bool = False,
) -> dict[str, Any]:
    """Write statistics of heads, or all `units`, as CSV, and return the facts of its JSON."""
    folder.check(pair)
    text = read_drawn(pair, settings)
    model = folder.load(settings.device)
    model = UnitTransformer.of(model) if units else model
    with (
        batches_of("resources", settings.batch_tokens),
        tqdm(total=len(text), unit="sentence", disable=None) as bar,
    ):
        values, facts = measure(model, text, settings, bar)
    about = {
        "data": settings.data,
        "sentences": len(text),
        "weights": sha256(*folder.weight_files),
        **facts,
        "provenance": origin,
    }
    write_result(out, COLUMNS, head_rows(model.grid.heads(), values), about)
    return about
