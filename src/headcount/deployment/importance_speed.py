"""Time to measure importance beside time to train on the same sentences."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from headcount.base.files import write_result
from headcount.base.settings.decode import SpeedSettings
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import ParallelText, in_order
from headcount.deployment.speed import time_in_turns
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import measure_importance
from headcount.model.loss import summed_loss
from headcount.model.machine import batches_of
from headcount.model.transformer import Transformer, first_device
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

COLUMNS = ("work", "repeat", "sentences", "seconds")
SMOOTHING = 0.1  # of the training that is timed; another value takes as long


def write_importance_speed(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    speed: SpeedSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Time importance and training on the same batches, and write one measurement a row.

    Both use the first `speed.sentences` pairs on which importance is measured. A JSON beside `out`
    has threads, device, and `origin`. Raises UserError if the text has fewer than two sentence
    pairs or the model another vocabulary.
    """
    folder.check(pair)
    drawn = read_drawn(pair, settings)
    text = drawn.part(range(min(len(drawn), speed.sentences)))
    model = folder.load(settings.device)
    device = first_device(model).type
    works = {
        "importance": {"all": lambda: measure_importance(model, text, settings)},
        "training": {"all": epoch_of(model, text, settings.batch_tokens)},
    }
    rows = [
        [timing.of, timing.repeat, len(text), timing.seconds]
        for timing in time_in_turns(works, speed.repeats, device)
        if timing.repeat
    ]
    facts = {"threads": speed.threads, "device": device, "provenance": origin}
    write_result(out, COLUMNS, rows, facts)


def epoch_of(model: Transformer, text: ParallelText, batch_tokens: int) -> Callable[[], None]:
    """Return a pass of plain training over a text, by a copy of the model: one update a batch."""
    trained = copy.deepcopy(model).train().requires_grad_(True)
    optimiser = torch.optim.Adam(trained.parameters(), fused=True)

    def epoch() -> None:
        with batches_of("train", batch_tokens):
            for batch in in_order(text, batch_tokens, first_device(trained)):
                optimiser.zero_grad(set_to_none=True)
                loss = summed_loss(trained, batch, None, SMOOTHING)
                (loss / batch.target_tokens).backward()
                optimiser.step()

    return epoch
