"""Multipliers of feed-forward units and of whole layers.

Letters in shapes: b sentences, q positions, f units of a layer, d width of the model.
"""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from headcount.base.addresses import HeadGrid
from headcount.model.layers import Memory, Targets
from headcount.model.transformer import Transformer


class UnitTransformer(Transformer):
    """A Transformer whose multiplier has entries for feed-forward units and layers, too.

    An entry ξ of a feed-forward unit multiplies its activation. Of a layer, which adds y − x to its
    input x, the output is ξ y + (1 − ξ) x. Ones give the same bits as None. `multiplier` is in the
    order of `grid`, whose first entries are the heads.
    """

    @classmethod
    def of(cls, model: Transformer) -> Self:
        """Return a model with the same parameters, whose grid has all kinds of units."""
        same = copy.copy(model)
        same.__class__ = cls
        same.grid = model.settings.unit_grid
        return same

    def encode(self, src: Tensor, multiplier: Tensor | None = None) -> Memory:
        with self._multiplied(multiplier, "enc", self.encoder):
            return super().encode(src, multiplier)

    def decode(
        self,
        tgt_in: Tensor,
        memory: Memory,
        multiplier: Tensor | None = None,
        targets: Targets | None = None,
    ) -> Tensor:
        with self._multiplied(multiplier, "dec", self.decoder):
            return super().decode(tgt_in, memory, multiplier, targets)

    @contextmanager
    def _multiplied(
        self, multiplier: Tensor | None, side: str, layers: nn.ModuleList
    ) -> Iterator[None]:
        """Multiply the units of one side, `enc` or `dec`, in this context."""
        with ExitStack() as hooks:
            for number, layer in enumerate(layers if multiplier is not None else ()):
                scale = partial(_scale, self.part(multiplier, f"{side}_ffn", number))
                blend = partial(_blend, self.part(multiplier, f"{side}_layer", number))
                outer = layer.feed_forward.outer
                hooks.enter_context(outer.register_forward_pre_hook(scale))
                hooks.enter_context(layer.register_forward_hook(blend))
            yield


def with_grid(model: Transformer, grid: HeadGrid) -> Transformer:
    """Return a model with the same parameters whose grid is this one, of heads or of all units."""
    return model if grid == model.grid else UnitTransformer.of(model)


def _finer(share: Tensor, states: Tensor) -> Tensor:
    return share.to(torch.promote_types(states.dtype, torch.float32))  # in bf16 0.9985 is 1


def _scale(share: Tensor, _: nn.Module, inputs: tuple[Tensor]) -> Tensor:
    """Return activations [b, q, f] times ξ, [f] or [b, f]."""
    return inputs[0] * _finer(share, inputs[0])[..., None, :]


def _blend(share: Tensor, _: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
    """Return ξ output + (1 − ξ) input, both [b, q, d], for ξ of a layer, [1] or [b, 1]."""
    kept = _finer(share, output)[..., None]
    return kept * output + (1 - kept) * inputs[0]
