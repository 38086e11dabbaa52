"""Encoder and decoder layers, with layer norm before or after each sub-layer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.settings.model import ModelSettings
from headcount.model.attention import (
    Attention,
    DenseAttention,
    MultiHeadAttention,
    no_warning_of_empty,
)
from headcount.model.kernels.matmul import Linear
from headcount.model.kernels.small import dropout

ACTIVATIONS = {"relu": functional.relu, "silu": functional.silu, "gelu": functional.gelu}


class Residual(nn.Module):
    """Residual sum, dropout and layer norm around a sub-layer, the norm before or after it."""

    def __init__(self, settings: ModelSettings):
        super().__init__()
        self.norm = nn.LayerNorm(settings.d_model, eps=settings.norm_epsilon)
        self.before = settings.norm == "pre"
        self.dropout = settings.dropout

    def enter(self, states: Tensor) -> Tensor:
        """Return the input of the sub-layer: norm(x) for `pre`, x for `post`."""
        return self.norm(states) if self.before else states

    def leave(self, states: Tensor, output: Tensor) -> Tensor:
        """Return x + dropout(output) for `pre`, norm(x + dropout(output)) for `post`."""
        states = states + dropout(output, self.dropout, self.training)
        return states if self.before else self.norm(states)


class FeedForward(nn.Module):
    """Two linear maps with an activation between them."""

    def __init__(self, settings: ModelSettings, width: int):
        super().__init__()
        with no_warning_of_empty():
            self.inner = Linear(settings.d_model, width)
            self.outer = Linear(width, settings.d_model)
        self.dropout = settings.dropout
        self.activation = ACTIVATIONS[settings.activation]
        for linear in (self.inner, self.outer):
            if width:
                nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Tensor) -> Tensor:
        # Not by oneDNN with the product, since it turns NaN into 0.
        in_place = self.activation is functional.relu and not torch.is_grad_enabled()
        active = (torch.relu_ if in_place else self.activation)(self.inner(states))
        return self.outer(dropout(active, self.dropout, self.training))


@dataclass(frozen=True)
class Memory:
    """Keys and values of the source for all decoder layers, and the mask of real tokens."""

    keys_values: list[tuple[Tensor, Tensor]]  # per decoder layer, [b, h, k, e] each
    mask: Tensor  # [b, 1, 1, k], True = may be attended to

    def each(self, change: Callable[[Tensor], Tensor]) -> "Memory":
        """Return a memory whose tensors are changed by a function, such as a choice of rows."""
        pairs = [(change(keys), change(values)) for keys, values in self.keys_values]
        return Memory(pairs, change(self.mask))


class Targets(Protocol):
    """Target positions that are decoded together, and their attention."""

    positions: slice  # of the target; one position may stand for all
    self_attention: Attention  # to keys and values from `extend`
    cross_attention: Attention  # to the source

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values [b, h, k, e] of earlier and these positions."""
        ...


class WholeTargets(Targets):
    """All target positions, with causal self-attention and dropout of attention weights."""

    def __init__(self, length: int, memory: Memory, dropped: float):
        self.positions = slice(0, length)
        self.self_attention = DenseAttention(causal=True, dropped=dropped)
        self.cross_attention = DenseAttention(memory.mask, dropped=dropped)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values unchanged."""
        return keys, values


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward layer."""

    def __init__(self, settings: ModelSettings, heads: int, width: int):
        super().__init__()
        self.attention = MultiHeadAttention(settings.d_model, heads, settings.head_width)
        self.feed_forward = FeedForward(settings, width)
        self.around_attention = Residual(settings)
        self.around_feed_forward = Residual(settings)

    def forward(self, states: Tensor, pattern: Attention, multiplier: Tensor | None) -> Tensor:
        """Return output states [b, k, d]. `multiplier` is of this layer's heads."""
        queries, keys, values = self.attention.project(self.around_attention.enter(states))
        output = self.attention(queries, keys, values, pattern, multiplier)
        states = self.around_attention.leave(states, output)
        output = self.feed_forward(self.around_feed_forward.enter(states))
        return self.around_feed_forward.leave(states, output)


class DecoderLayer(nn.Module):
    """Self-attention, encoder-decoder attention and feed-forward layer."""

    def __init__(
        self, settings: ModelSettings, number: int, self_heads: int, cross_heads: int, width: int
    ):
        super().__init__()
        self.number = number  # of the layer in the decoder, from 0
        self.attention = MultiHeadAttention(settings.d_model, self_heads, settings.head_width)
        self.cross = MultiHeadAttention(settings.d_model, cross_heads, settings.head_width)
        self.feed_forward = FeedForward(settings, width)
        self.around_attention = Residual(settings)
        self.around_cross = Residual(settings)
        self.around_feed_forward = Residual(settings)

    def forward(
        self,
        states: Tensor,
        targets: Targets,
        memory: Memory,
        self_multiplier: Tensor | None,
        cross_multiplier: Tensor | None,
    ) -> Tensor:
        """Return output states [b, q, d]. The multipliers are of this layer's heads."""
        queries, keys, values = self.attention.project(self.around_attention.enter(states))
        keys, values = targets.extend(self.number, keys, values)
        output = self.attention(queries, keys, values, targets.self_attention, self_multiplier)
        states = self.around_attention.leave(states, output)
        queries = self.cross.project_queries(self.around_cross.enter(states))
        keys, values = memory.keys_values[self.number]
        output = self.cross(queries, keys, values, targets.cross_attention, cross_multiplier)
        states = self.around_cross.leave(states, output)
        output = self.feed_forward(self.around_feed_forward.enter(states))
        return self.around_feed_forward.leave(states, output)
