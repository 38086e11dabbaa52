"""Encoder and decoder layers, with layer norm before or after each sub-layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.settings.model import ModelSettings
from headcount.model.attention import MultiHeadAttention
from headcount.model.kernels.dropout import dropout
from headcount.model.kernels.places import Places
from headcount.model.kernels.products import Linear

NORM_EPSILON = 1e-6


class Residual(nn.Module):
    """A sub-layer with its residual sum, dropout and layer norm."""

    def __init__(self, settings: ModelSettings):
        super().__init__()
        self.norm = nn.LayerNorm(settings.d_model, eps=NORM_EPSILON)
        self.before = settings.norm == "pre"
        self.dropout = settings.dropout

    def forward(self, states: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x + sublayer(norm(x)) for `pre`, norm(x + sublayer(x)) for `post`."""
        if self.before:
            return states + self._drop(sublayer(self.norm(states)))
        return self.norm(states + self._drop(sublayer(states)))

    def _drop(self, states: Tensor) -> Tensor:
        return dropout(states, self.dropout, self.training)


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them."""

    def __init__(self, settings: ModelSettings):
        super().__init__()
        self.inner = Linear(settings.d_model, settings.d_ff)
        self.outer = Linear(settings.d_ff, settings.d_model)
        self.dropout = settings.dropout
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Tensor) -> Tensor:
        # Not by oneDNN with the product: it makes 0 of what is not a number and so hides it.
        # In place in a search, where no gradient needs what was there.
        active = functional.relu(self.inner(states), inplace=not torch.is_grad_enabled())
        return self.outer(dropout(active, self.dropout, self.training))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward layer."""

    def __init__(self, settings: ModelSettings, heads: int):
        super().__init__()
        self.attention = MultiHeadAttention(settings.d_model, heads, settings.head_width)
        self.feed_forward = FeedForward(settings)
        self.around_attention = Residual(settings)
        self.around_feed_forward = Residual(settings)

    def forward(self, states: Tensor, padding_mask: Tensor, multiplier: Tensor | None) -> Tensor:
        """States [b, k, d] of the layer above; `multiplier` covers this layer's heads."""

        def attend(x: Tensor) -> Tensor:
            return self.attention(*self.attention.project(x), padding_mask, multiplier=multiplier)

        states = self.around_attention(states, attend)
        return self.around_feed_forward(states, self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention, encoder-decoder attention and feed-forward layer."""

    def __init__(self, settings: ModelSettings, self_heads: int, cross_heads: int):
        super().__init__()
        self.attention = MultiHeadAttention(settings.d_model, self_heads, settings.head_width)
        self.cross = MultiHeadAttention(settings.d_model, cross_heads, settings.head_width)
        self.feed_forward = FeedForward(settings)
        self.around_attention = Residual(settings)
        self.around_cross = Residual(settings)
        self.around_feed_forward = Residual(settings)

    def forward(
        self,
        states: Tensor,
        attend: Callable[[Tensor], Tensor],
        memory: tuple[Tensor, Tensor],
        mask: Tensor | Places,
        multiplier: Tensor | None,
    ) -> Tensor:
        """States [b, q, d] of the layer above.

        `attend` is the self-attention, over whole targets or over a cache; `memory` holds the
        projected keys and values of the source, `mask` says which of them may be attended to;
        `multiplier` covers the encoder-decoder heads.
        """

        def look_at_source(x: Tensor) -> Tensor:
            queries = self.cross.project_queries(x)
            return self.cross(queries, *memory, mask, multiplier=multiplier)

        states = self.around_attention(states, attend)
        states = self.around_cross(states, look_at_source)
        return self.around_feed_forward(states, self.feed_forward)
