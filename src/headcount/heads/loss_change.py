"""How the loss changes without a head: what importance, a score of first order, stands for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.files import write_result
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.heads.importance import facts_of_drawn, read_drawn
from headcount.model.loss import losses_after
from headcount.model.machine import batches_of
from headcount.model.transformer import Transformer, first_device
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def write_loss_change(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write what `measure_loss_change` finds on the sentence pairs that importance is measured on.

    `out` is a CSV with the statistics loss_change and loss_rise. Beside it goes a JSON of the same
    name: which data, how many sentences, the SHA-256 of the weights, and `origin`. Raises
    UserError if the text has fewer than two sentence pairs or the model knows other words.
    """
    folder.check(pair)
    text = read_drawn(pair, settings)
    model = folder.load(settings.device)
    with tqdm(total=len(text), unit="sentence", disable=None) as bar:
        values = measure_loss_change(model, text, settings, bar.update)
    statistics = dict(zip(("loss_change", "loss_rise"), values, strict=True))
    facts = {**facts_of_drawn(folder, text, settings), "provenance": origin}
    write_result(out, COLUMNS, head_rows(model.grid.heads(), statistics), facts)


def measure_loss_change(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    done: Callable[[int], object] = lambda sentences: None,
) -> np.ndarray:
    """Change of the loss without each head alone, [2, heads], nats per sentence.

    Row 0: the mean over sentences of |L(x) without the head − L(x)|; larger means that the
    predictions depend more on it. Row 1: the mean of the difference itself; above 0, the loss is
    higher without. L(x) is the loss of a sentence, summed over its target tokens; dropout is
    off. One forward pass for every head and batch, of the decoder alone where the head
    is there. `done` is told the number of sentences finished.

    Source: what Michel et al. 2019, section 4.1, approximate by importance.
    """
    model.eval()
    encoder = sum(model.grid.counts["enc_self"])  # heads, the first ones in flat order
    total = np.zeros((2, model.grid.size))
    without = 1 - torch.eye(model.grid.size, device=first_device(model))
    with batches_of("resources", settings.batch_tokens), torch.inference_mode():
        for batch in in_order(text, settings.batch_tokens, first_device(model)):
            memory = model.encode(batch.src)
            whole = by_sentence(losses_after(memory, model, batch, None), batch)
            for head, multiplier in enumerate(without):
                own = model.encode(batch.src, multiplier) if head < encoder else memory
                losses = losses_after(own, model, batch, multiplier)
                change = by_sentence(losses, batch) - whole
                total[:, head] += change.abs().sum().item(), change.sum().item()
            done(len(batch.indices))
    return total / len(text)


def by_sentence(losses: Tensor, batch: Batch) -> Tensor:
    """Return sums over the target tokens of each sentence, [b], in double precision."""
    sentences = batch.real // batch.tgt_out.shape[1]
    sums = losses.new_zeros(len(batch.indices), dtype=torch.float64)
    return sums.index_add_(0, sentences, losses.double())
