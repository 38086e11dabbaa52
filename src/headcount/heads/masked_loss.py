"""The loss of a text under one set of multipliers after another."""

import torch
from torch import Tensor

from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import ParallelText, in_order
from headcount.heads.loss_change import by_sentence
from headcount.model.layers import Memory
from headcount.model.loss import losses_after
from headcount.model.transformer import Transformer, first_device


class MaskedLoss:
    """Mean loss of a sentence under any multiplier; what an encoder made serves the next one too.

    L(x) is the loss of a sentence, summed over its target tokens, nats; dropout is off.
    """

    def __init__(
        self,
        model: Transformer,
        text: ParallelText,
        settings: ImportanceSettings,
    ):
        self.model = model.eval()
        self.batches = list(in_order(text, settings.batch_tokens, first_device(model)))
        self._encoder = slice(0, sum(model.grid.counts["enc_self"]))
        self._read: Tensor | None = None  # multipliers of the encoder's heads when it last ran
        self._memories: list[Memory] = []

    @torch.inference_mode()
    def under(self, multiplier: Tensor) -> float:
        """Mean over sentences of L(x) under a multiplier, [heads]; in nats, smaller is better."""
        multiplier = multiplier.to(next(self.model.parameters()))
        self._encode(multiplier)
        total = sum(
            by_sentence(losses_after(memory, self.model, batch, multiplier), batch).sum()
            for memory, batch in zip(self._memories, self.batches, strict=True)
        )
        return float(total) / sum(len(batch.indices) for batch in self.batches)

    def whole_and_none(self) -> tuple[float, float]:
        """The loss with every head as it is, and without any."""
        ones = torch.ones(self.model.grid.size)
        return self.under(ones), self.under(0 * ones)

    def _encode(self, multiplier: Tensor) -> None:
        own = multiplier[self._encoder]
        if self._read is None or not torch.equal(own, self._read):
            self._memories = [self.model.encode(batch.src, multiplier) for batch in self.batches]
            self._read = own.clone()
