"""Loss under masks: without each head alone, under any multiplier, and Shapley values of heads.

L(x) is the loss of a sentence in nats, summed over its target tokens. Dropout is off.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.random_streams import Stream
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.heads.drawn_text import Done, write_measured
from headcount.model.layers import Memory
from headcount.model.loss import losses_after
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
    """Write the statistics loss_change and loss_rise, see `measure_loss_change`.

    Files and errors are described at `write_measured`.
    """

    def measure(model: Transformer, text: ParallelText, bar: tqdm) -> tuple[dict, dict]:
        values = measure_loss_change(model, text, settings, bar.update)
        return dict(zip(("loss_change", "loss_rise"), values, strict=True)), {}

    write_measured(measure, folder, pair, settings, out, origin)


def measure_loss_change(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    done: Done = lambda sentences: None,
) -> np.ndarray:
    """Return the change of the loss without each head alone, [2, heads], nats per sentence.

    Row 0 is the mean over sentences of |L(x) without the head − L(x)|: larger means that the
    predictions depend more on the head. Row 1 is the mean of the difference itself: above 0, the
    loss is higher without the head. Only the decoder runs again for a head of the decoder.

    Source: Michel et al. 2019, section 4.1, approximate this change by importance.
    """
    model.eval()
    encoder = sum(model.grid.counts["enc_self"])  # heads, the first ones in flat order
    total = np.zeros((2, model.grid.size))
    without = 1 - torch.eye(model.grid.size, device=first_device(model))
    with torch.inference_mode():
        for batch in in_order(text, settings.batch_tokens, first_device(model)):
            memory = model.encode(batch.src)
            whole = by_sentence(losses_after(memory, model, batch, None), batch)
            for head, multiplier in enumerate(without):
                masked = model.encode(batch.src, multiplier) if head < encoder else memory
                losses = losses_after(masked, model, batch, multiplier)
                change = by_sentence(losses, batch) - whole
                total[:, head] += change.abs().sum().item(), change.sum().item()
            done(len(batch.indices))
    return total / len(text)


def by_sentence(losses: Tensor, batch: Batch) -> Tensor:
    """Return sums over the target tokens of each sentence, [b], in double precision."""
    sentences = batch.real // batch.tgt_out.shape[1]
    sums = losses.new_zeros(len(batch.indices), dtype=torch.float64)
    return sums.index_add_(0, sentences, losses.double())


class MaskedLoss:
    """Mean loss of a sentence under any multiplier. The encoder runs only when its heads change."""

    def __init__(self, model: Transformer, text: ParallelText, settings: ImportanceSettings):
        self.model = model.eval()
        self.batches = list(in_order(text, settings.batch_tokens, first_device(model)))
        self._encoder = slice(0, sum(model.grid.counts["enc_self"]))
        self._last: Tensor | None = None  # multipliers of the encoder's heads when it last ran
        self._memories: list[Memory] = []

    @torch.inference_mode()
    def under(self, multiplier: Tensor) -> float:
        """Return the mean of L(x) under a multiplier [heads], in nats; smaller is better."""
        multiplier = multiplier.to(next(self.model.parameters()))
        in_encoder = multiplier[self._encoder]
        if self._last is None or not torch.equal(in_encoder, self._last):
            self._memories = [self.model.encode(batch.src, multiplier) for batch in self.batches]
            self._last = in_encoder.clone()
        total = sum(
            by_sentence(losses_after(memory, self.model, batch, multiplier), batch).sum()
            for memory, batch in zip(self._memories, self.batches, strict=True)
        )
        return float(total) / sum(len(batch.indices) for batch in self.batches)

    def whole_and_none(self) -> tuple[float, float]:
        """Return the loss with every head, and without any."""
        ones = torch.ones(self.model.grid.size)
        return self.under(ones), self.under(0 * ones)


def random_orders(heads: int, orders: int, seed: int) -> list[list[int]]:
    """Return random orders in which all heads are masked, the same for a seed."""
    return [
        Stream.SHAPLEY.generator(seed, order).permutation(heads).tolist()
        for order in range(1, orders + 1)
    ]


def shapley_by_order(
    loss: MaskedLoss, orders: Iterable[list[int]], done: Callable[[], object] = lambda: None
) -> np.ndarray:
    """Return the rise of the loss as each head is masked, [orders, heads], nats per sentence.

    In an order, the value of a head is L(S without it) − L(S), with S the heads not yet masked.
    Each row adds up to the loss without any head minus the loss with all. The mean over orders
    estimates the Shapley value: above 0 the head lowers the loss. `done` is called after an order.

    Source: Held and Yang 2023, section 3. Sampling: Ghorbani and Zou 2019, algorithm 1.
    """
    whole, none = loss.whole_and_none()
    rows = []
    for order in orders:
        values, multiplier = np.zeros(len(order)), torch.ones(len(order))
        losses = [whole]
        for head in order[:-1]:
            multiplier[head] = 0
            losses.append(loss.under(multiplier))
        values[order] = np.diff([*losses, none])
        rows.append(values)
        done()
    return np.stack(rows)
