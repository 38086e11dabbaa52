"""Multi-head attention with one multiplier per head.

Letters in shapes: b sentences, h heads, q query positions, k key positions, d width of the
model, e width of one head.
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.model.kernels.matmul import Linear, linear
from headcount.model.kernels.small import dropout, softmax

# On a CPU the fused kernel takes 1.1 to 2.5 times as long as attention written out for up to this
# number of keys, and its gradient in bf16 four to six times as long: benchmarks/attention.py.
_FEW = 32


class Attention(Protocol):
    """Pattern of the keys that queries attend to, and the computation of head outputs."""

    def context(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return outputs of heads [b, h, q, e]: sums of values times weights."""

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return weights [b, h, q, k] of the keys. Every row sums to 1."""


class DenseAttention:
    """Attention of queries to all keys except padding or, if causal, later ones."""

    def __init__(self, mask: Tensor | None = None, causal: bool = False, dropped: float = 0.0):
        """`mask`: boolean [b, 1, 1 or q, k], True = may be attended to, or None for all keys.

        `causal`: a position sees itself and positions before it. `dropped`: dropout of weights.
        """
        self.mask = mask
        self.causal = causal
        self.dropped = dropped

    def context(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return outputs of heads [b, h, q, e], by the faster way for this number and format."""
        if not queries.shape[1]:  # for which torch's fused kernel fails: on a GPU, in its gradient
            return queries + values.sum(-2, keepdim=True)  # the encoder still has a gradient, of 0
        on_cpu = keys.device.type == "cpu" and not torch.compiler.is_compiling()
        out = on_cpu and (keys.dtype == torch.bfloat16 or keys.shape[-2] <= _FEW)
        return (self.written_out if out else self.fused)(queries, keys, values)

    def written_out(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return `context` by way of the weights."""
        weights = dropout(self.weights(queries, keys), self.dropped, training=True)
        return weights.to(values.dtype) @ values

    def fused(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return `context` by torch's fused kernel."""
        return functional.scaled_dot_product_attention(
            *(queries, keys, values), self.mask, self.dropped, is_causal=self.causal
        )

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return weights [b, h, q, k] in fp32 or finer. Every query must see a key."""
        scores = (queries / math.sqrt(queries.shape[-1])) @ keys.transpose(-2, -1)
        if self.mask is not None:
            scores = scores + scores.new_zeros(self.mask.shape).masked_fill_(~self.mask, -math.inf)
        if self.causal:
            scores = scores + scores.new_full(scores.shape[-2:], -math.inf).triu_(1)
        return softmax(scores, torch.promote_types(scores.dtype, torch.float32))


class MultiHeadAttention(nn.Module):
    """Self- or cross-attention. Heads are masked, gated and measured in `merge`.

    W_Q, W_K and W_V are the three row blocks of `inputs`, so that self-attention needs one matrix
    product. Without heads the output is the bias of W_O. `means`, [h, e] or None, replaces outputs
    of masked heads and is not saved with the weights.
    """

    means: Tensor | None

    def __init__(self, d_model: int, heads: int, d_head: int):
        super().__init__()
        self.heads = heads
        self.d_head = d_head
        with no_warning_of_empty():
            self.inputs = Linear(d_model, 3 * heads * d_head)
            self.output = Linear(heads * d_head, d_model)
        self.register_buffer("means", None, persistent=False)
        if heads:
            for block in (*self.inputs.weight.chunk(3), self.output.weight):
                nn.init.xavier_uniform_(block)
        nn.init.zeros_(self.inputs.bias)
        nn.init.zeros_(self.output.bias)

    def project(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values [b, h, position, e] of states [b, position, d]."""
        return self._by_head(self.inputs(states), 3)

    def project_queries(self, states: Tensor) -> Tensor:
        """Return queries [b, h, q, e] of states [b, q, d]."""
        width = self.heads * self.d_head
        weight, bias = self.inputs.weight[:width], self.inputs.bias[:width]
        return self._by_head(linear(states, weight, bias), 1)[0]

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values [b, h, k, e] of the encoder's output [b, k, d]."""
        width = self.heads * self.d_head
        weight, bias = self.inputs.weight[width:], self.inputs.bias[width:]
        return self._by_head(linear(memory, weight, bias), 2)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        attention: Attention,
        multiplier: Tensor | None = None,
    ) -> Tensor:
        """Return the output [b, q, d] of projected queries, keys and values, see `merge`."""
        return self.merge(attention.context(queries, keys, values), multiplier)

    def merge(self, context: Tensor, multiplier: Tensor | None) -> Tensor:
        """Return W_O applied to the head outputs [b, h, q, e] times their multipliers: [b, q, d].

        `multiplier` ξ is [h] or [b, h]. Ones give the same bits as None. With `means` μ an output c
        becomes ξ c + (1 − ξ) μ.
        """
        if multiplier is not None:
            finer = torch.promote_types(context.dtype, torch.float32)  # in bf16 0.9985 is 1
            share = multiplier.to(finer)[..., None, None]
            context = context * share
            if self.means is not None:
                context = context + (1 - share) * self.means[:, None]
        return self.output(context.transpose(1, 2).flatten(2))

    def _by_head(self, projected: Tensor, parts: int) -> tuple[Tensor, ...]:
        batch, length, _ = projected.shape
        split = projected.view(batch, length, parts, self.heads, self.d_head)
        return split.permute(2, 0, 3, 1, 4).unbind(0)


@contextmanager
def no_warning_of_empty() -> Iterator[None]:
    """Silence torch's warning that a layer without heads or units has nothing to draw."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Initializing zero-element tensors")
        yield


def padding_mask(tokens: Tensor, pad: int) -> Tensor:
    """Return a boolean mask [b, 1, 1, k] of tokens [b, k], True for real tokens."""
    return (tokens != pad)[:, None, None, :]


def sinusoids(length: int, width: int) -> Tensor:
    """Return sines and cosines of positions, [length, width]: Vaswani et al. 2017, section 3.5."""
    with torch.device("cpu"):  # also for a model on the meta device
        position = torch.arange(length, dtype=torch.float64)[:, None]
        rate = torch.pow(10000.0, -torch.arange(0, width, 2, dtype=torch.float64) / width)
        table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate[: width // 2])
    return table.float()
