"""Sparse attention of few queries to listed keys, for a search on a CPU in fp32.

A hypothesis sees its own words and a short source. Products of such small matrices take a CPU two
to three times as long as dot products with these keys and sums of these values.

Letters in shapes: n sentences, h heads, m queries and k keys of a sentence, t keys that a query
attends to, e width of one head.
"""

import math
import warnings

import torch
from torch import Tensor
from torch.nn import functional

from headcount.model.kernels.small import softmax_columns


class SparseAttention:
    """Attention of every query to keys at listed positions, equally many for every query."""

    def __init__(self, positions: Tensor, mask: Tensor | None = None):
        """`positions`: [n, m, t], below k. `mask`: [n, 1, t], True = may be attended to."""
        self.positions = positions.int()
        self.penalty = None
        if mask is not None and not mask.all():
            self.penalty = torch.zeros(mask.shape).masked_fill_(~mask, -math.inf)
        self.layouts: dict[tuple, Tensor] = {}  # by shape and strides of the keys

    def context(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return outputs [n, h, m, e] of queries [n, h, m, e] and keys and values [n, h, k, e]."""
        sentences, heads, count, width = queries.shape
        if not heads:
            return queries
        if values.stride() != keys.stride():
            raise ValueError(f"values lie as {values.stride()}, expected {keys.stride()} as keys")
        weights = self._weights(queries, keys)
        named = self._layout(keys).col_indices().view_as(weights)
        context = functional.embedding_bag(
            named, _rows(values), mode="sum", per_sample_weights=weights
        )
        return context.view(sentences, count, heads, width).transpose(1, 2)

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return weights [n, h, m, t] of the listed keys, in their order; rows sum to 1."""
        sentences, heads, count, _ = queries.shape
        return self._weights(queries, keys).view(sentences, count, heads, -1).transpose(1, 2)

    def _weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the weights as rows (n, m, h) of t numbers."""
        width = queries.shape[3]
        asked, scale = queries.transpose(1, 2).reshape(-1, width), 1 / math.sqrt(width)
        rows, layout = _rows(keys).t(), self._layout(keys)
        # Written into the layout, since a new result would copy the indices. Numbers of another
        # layer are cleared first, since 0 times NaN is not 0.
        layout.values().zero_()
        torch.sparse.sampled_addmm(layout, asked, rows, beta=0.0, alpha=scale, out=layout)
        scores = layout.values()
        if self.penalty is not None:
            scores = scores.view(len(queries), -1, self.penalty.shape[2]) + self.penalty
        return softmax_columns(scores.view(len(asked), -1))

    def _layout(self, keys: Tensor) -> Tensor:
        """Return a sparse matrix with an entry where a query attends to a row of `_rows(keys)`."""
        key = keys.shape, keys.stride()
        if key in self.layouts:
            return self.layouts[key]
        sentences, heads, _, width = keys.shape
        by_sentence, by_head, by_position = (stride // width for stride in keys.stride()[:3])
        first = torch.arange(sentences, dtype=torch.int32)[:, None, None, None] * by_sentence
        head = torch.arange(heads, dtype=torch.int32)[:, None] * by_head
        columns = first + head + self.positions[:, :, None] * by_position  # [n, m, h, t]
        rows = columns[..., 0].numel()
        starts = torch.arange(rows + 1, dtype=torch.int32) * columns.shape[3]
        layout = _zeros_at(starts, columns.flatten(), (rows, len(_rows(keys))))
        return self.layouts.setdefault(key, layout)


def _zeros_at(starts: Tensor, columns: Tensor, shape: tuple[int, int]) -> Tensor:
    zeros = torch.zeros(columns.shape)
    return torch.sparse_csr_tensor(starts, columns, zeros, shape, check_invariants=False)


def _rows(keys: Tensor) -> Tensor:
    """Return the memory from the first to the last of keys [n, h, k, e], as rows of e numbers."""
    width = keys.shape[3]
    if keys.stride(3) != 1 or any(stride % width for stride in keys.stride()[:3]):
        raise ValueError(f"keys lie as {keys.stride()}, expected whole rows of {width} numbers")
    steps = zip(keys.shape[:3], keys.stride()[:3], strict=True)
    last = sum((size - 1) * stride for size, stride in steps) // width
    return keys.as_strided((last + 1, width), (width, 1))


with warnings.catch_warnings():  # torch's, once in a process, that sparse tensors may change yet
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
    _zeros_at(torch.zeros(1, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), (0, 0))
