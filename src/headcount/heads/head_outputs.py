"""What heads give: the size of what each adds through W_O, and its mean output.

Letters in shapes: b sentences, q query positions, h heads of one layer, e width of a head, d width
of the model. Positions of padding count nowhere: with them a mean output is another one.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from headcount.base.addresses import HeadGrid
from headcount.base.head_values import read_in_order
from headcount.data.batches import Batch
from headcount.data.vocabulary import PAD
from headcount.model.observed import watch_inputs
from headcount.model.transformer import Transformer

COLUMNS = ("kind", "layer", "head", "dimension", "value")


class HeadOutputs:
    """Sums over the real query positions of every head, added up batch by batch."""

    def __init__(self, model: Transformer):
        self.model = model
        width = model.settings.head_width
        self._sizes, self._positions = np.zeros(model.grid.size), np.zeros(model.grid.size)
        self._outputs = np.zeros((model.grid.size, width))
        self._factors = [_factors(module.output.weight, width) for *_, module in _with_heads(model)]

    @contextmanager
    def of(self, batch: Batch) -> Iterator[None]:
        """Context in which the model runs once on a batch, every multiplier 1."""
        outputs = [module.output for *_, module in _with_heads(self.model)]
        with watch_inputs(outputs) as entering:
            yield
        with torch.no_grad():
            self._add(batch, entering)

    def norms(self) -> np.ndarray:
        """Mean over positions of ‖W_O^h c_h‖, [heads]; larger: it adds more. No unit.

        Source: Kobayashi et al. 2020, section 3, for the head's whole output.
        """
        return self._sizes / self._positions

    def means(self) -> np.ndarray:
        """Mean output of every head over positions, before W_O: [heads, e]."""
        return self._outputs / self._positions[:, None]

    def _add(self, batch: Batch, entering: Mapping[nn.Module, Tensor]) -> None:
        for (kind, layer, module), factors in zip(
            _with_heads(self.model), self._factors, strict=True
        ):
            span = self.model.grid.span(kind, layer)
            contexts = entering[module.output][_real_queries(batch, kind)]
            by_head = contexts.unflatten(1, (module.heads, module.d_head)).double()
            sizes = torch.einsum("phe,hfe->phf", by_head, factors).norm(dim=2)
            self._sizes[span] += sizes.sum(0).cpu().numpy()
            self._outputs[span] += by_head.sum(0).cpu().numpy()
            self._positions[span] += len(by_head)


def _real_queries(batch: Batch, kind: str) -> Tensor:
    """[b, q]: whether a query position of this kind of attention is no padding."""
    return (batch.src if kind == "enc_self" else batch.tgt_in) != PAD


def mean_rows(means: np.ndarray, grid: HeadGrid) -> list[list]:
    """The cells of `COLUMNS`, all digits kept, of mean outputs [heads, e]."""
    keys = _dimensions(grid, means.shape[1])
    return [[*key, value] for key, value in zip(keys, means.flatten().tolist(), strict=True)]


def read_means(path: Path, grid: HeadGrid, width: int) -> np.ndarray:
    """Mean outputs [heads, e] of heads of this width, from a file of `mean_rows`.

    Raises UserError unless the file has a finite number for each dimension of each head of this
    model, in order, and no other row.
    """
    keys = _dimensions(grid, width)
    found = read_in_order(path, COLUMNS, keys, "scripts/more_measures.py")
    return found.reshape(grid.size, width)


def _dimensions(grid: HeadGrid, width: int) -> list[tuple]:
    return [(*head, dimension) for head, dimension in product(grid.heads(), range(width))]


def _factors(weight: Tensor, width: int) -> Tensor:
    """R of W_O^h = QR for every head, [h, ·, e]: ‖R c‖ is ‖W_O^h c‖ with fewer products."""
    by_head = weight.detach().double().unflatten(1, (-1, width)).permute(1, 0, 2)
    return torch.linalg.qr(by_head, mode="r").R


def _with_heads(model: Transformer) -> Iterator[tuple]:
    """`model.attentions()` but those without heads."""
    return ((kind, layer, module) for kind, layer, module in model.attentions() if module.heads)
