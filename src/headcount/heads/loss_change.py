"""Loss under masks: without each head alone, under any multiplier, and Shapley values of heads.

L(x) is the loss of a sentence in nats, summed over its target tokens. Dropout is off.
"""

from collections.abc import Callable, Iterable
from functools import partial
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


def _measure_change(
    model: Transformer, text: ParallelText, settings: ImportanceSettings, bar: tqdm
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the statistics of `measure_loss_change`, and no facts."""
    values = measure_loss_change(model, text, settings, bar.update)
    return dict(zip(("loss_change", "loss_rise"), values, strict=True)), {}


write_loss_change = partial(write_measured, _measure_change)


def measure_loss_change(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    done: Done = lambda sentences: None,
) -> np.ndarray:
    """Return the change of the loss without each head alone, [2, heads], nats per sentence.

    Row 0 is the mean over sentences of its size, row 1 of the change: above 0, the loss rises.
    Source: Michel et al. 2019, section 4.1, approximate this change by importance.
    """
    total = np.zeros((2, model.grid.size))
    for batch in in_order(text, settings.batch_tokens, first_device(model)):
        loss = MaskedLoss(model, [batch])
        (whole,) = loss.by_sentence(torch.ones(model.grid.size))
        for head, multiplier in enumerate(1 - torch.eye(model.grid.size)):
            change = loss.by_sentence(multiplier)[0] - whole
            total[:, head] += change.abs().sum().item(), change.sum().item()
        done(len(batch.indices))
    return total / len(text)


class MaskedLoss:
    """Loss of sentences under any multiplier. The encoder runs only when its heads change."""

    def __init__(self, model: Transformer, batches: Iterable[Batch]):
        self.model, self.batches = model.eval(), list(batches)
        self._encoder = slice(0, sum(model.grid.counts["enc_self"]))
        self._last: Tensor | None = None  # multipliers of the encoder's heads when it last ran
        self._memories: list[Memory] = []

    @torch.inference_mode()
    def by_sentence(self, multiplier: Tensor) -> list[Tensor]:
        """Return L(x) of the sentences of each batch under a multiplier [heads], in fp64."""
        multiplier = multiplier.to(next(self.model.parameters()))
        in_encoder = multiplier[self._encoder]
        if self._last is None or not torch.equal(in_encoder, self._last):
            self._memories = [self.model.encode(batch.src, multiplier) for batch in self.batches]
            self._last = in_encoder.clone()
        sums = []
        for memory, batch in zip(self._memories, self.batches, strict=True):
            losses = losses_after(memory, self.model, batch, multiplier)
            of_batch = losses.new_zeros(len(batch.indices), dtype=torch.float64)
            sentences = batch.real // batch.tgt_out.shape[1]
            sums.append(of_batch.index_add_(0, sentences, losses.double()))
        return sums

    def under(self, multiplier: Tensor) -> float:
        """Return the mean of L(x) under a multiplier [heads], in nats."""
        sums = self.by_sentence(multiplier)
        return float(sum(of_batch.sum() for of_batch in sums)) / sum(map(len, sums))

    def whole_and_none(self) -> tuple[float, float]:
        """Return the loss with every head, and without any."""
        ones = torch.ones(self.model.grid.size)
        return self.under(ones), self.under(0 * ones)


def random_orders(heads: int, orders: int, seed: int) -> list[list[int]]:
    """Return random orders in which all heads are masked, the same for a seed."""
    draws = (Stream.SHAPLEY.generator(seed, order) for order in range(1, orders + 1))
    return [draw.permutation(heads).tolist() for draw in draws]


def shapley_by_order(
    loss: MaskedLoss, orders: Iterable[list[int]], done: Callable[[], object] = lambda: None
) -> np.ndarray:
    """Return the rise of the loss as each head is masked, [orders, heads], nats per sentence.

    Their mean is the Shapley value (Held and Yang 2023, section 3; Ghorbani and Zou 2019, algorithm
    1).
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
