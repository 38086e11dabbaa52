"""Outputs of heads: the size of the vector that each adds through W_O, and its mean output.

Letters in shapes: b sentences, q query positions, h heads of one layer, e width of a head, d width
of the model. Positions of padding are left out, since they would change the means.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from headcount.data.batches import Batch
from headcount.data.vocabulary import PAD
from headcount.model.observed import watch_inputs
from headcount.model.transformer import Transformer


class HeadOutputs:
    """Sums over the real query positions of every head, added up batch by batch."""

    def __init__(self, model: Transformer):
        self._grid, width = model.grid, model.settings.head_width
        self._sizes, self._positions = np.zeros(model.grid.size), np.zeros(model.grid.size)
        self._outputs = np.zeros((model.grid.size, width))
        self._layers = [
            (kind, layer, module, _factors(module.output.weight, width))
            for kind, layer, module in model.attentions()
            if module.heads
        ]

    @contextmanager
    def of(self, batch: Batch) -> Iterator[None]:
        """Return a context in which the model runs once on a batch, every multiplier 1."""
        with watch_inputs(module.output for _, _, module, _ in self._layers) as entering:
            yield
        with torch.no_grad():
            for kind, layer, module, factors in self._layers:
                queries = (batch.src if kind == "enc_self" else batch.tgt_in) != PAD
                self._add(self._grid.span(kind, layer), entering[module.output][queries], factors)

    def norms(self) -> np.ndarray:
        """Return the mean over positions of ‖W_O^h c_h‖, [heads], no unit.

        Source: Kobayashi et al. 2020, section 3, for the head's whole output.
        """
        return self._sizes / self._positions

    def means(self) -> np.ndarray:
        """Return the mean output of every head over positions, before W_O: [heads, e]."""
        return self._outputs / self._positions[:, None]

    def _add(self, span: slice, contexts: Tensor, factors: Tensor) -> None:
        """Add the contexts [positions, h · e] of one layer."""
        by_head = contexts.unflatten(1, (len(factors), -1)).double()
        sizes = torch.einsum("phe,hfe->phf", by_head, factors).norm(dim=2)
        self._sizes[span] += sizes.sum(0).cpu().numpy()
        self._outputs[span] += by_head.sum(0).cpu().numpy()
        self._positions[span] += len(by_head)


def _factors(weight: Tensor, width: int) -> Tensor:
    """Return R of W_O^h = QR for every head, [h, ·, e]: ‖R c‖ is ‖W_O^h c‖ with fewer products."""
    by_head = weight.detach().double().unflatten(1, (-1, width)).permute(1, 0, 2)
    return torch.linalg.qr(by_head, mode="r").R
