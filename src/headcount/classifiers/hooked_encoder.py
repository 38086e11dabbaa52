"""Our one head multiplier on a Hugging Face encoder with a classification head.

The library has no head masks of its own any more; a hook before each W_O multiplies what enters
it. Layers below the first masked one are the same under every mask: what leaves them can be kept.
Letters in shapes: b sentences, q positions, h heads of the model, e width of one head.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import torch
from torch import Tensor, nn

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.model.observed import watch_inputs

# Where W_O is: BERT, RoBERTa, ELECTRA and their like; DistilBERT.
_OUTPUTS = (r"encoder\.layer\.(\d+)\.attention\.output\.dense$",)
_OUTPUTS += (r"transformer\.layer\.(\d+)\.attention\.out_lin$",)


class HookedEncoder:
    """An encoder whose heads can be multiplied; all of them are of the kind `enc_self`."""

    def __init__(self, model: nn.Module, heads: int):
        """`heads`: of each layer. Raises UserError for a model whose layers are not found."""
        self.model = model
        found, stack = {}, ""
        for name, module in model.named_modules():
            for pattern in _OUTPUTS:
                if place := re.search(pattern, name):
                    found[int(place[1])], stack = module, name[: place.start(1) - 1]
        if not found or sorted(found) != list(range(len(found))):
            raise UserError(
                f"{type(model).__name__}: expected the attention of a BERT, RoBERTa, ELECTRA or "
                f"DistilBERT, found {len(found)} layers that look like one; name another model"
            )
        self._layers = model.get_submodule(stack)
        self._stack = model.get_submodule(stack.rpartition(".")[0])  # which runs its `layer`
        self.outputs = [found[layer] for layer in sorted(found)]
        self.grid = HeadGrid({"enc_self": (heads,) * len(found), "dec_self": (), "dec_enc": ()})

    @contextmanager
    def multiplied(self, multiplier: Tensor | None) -> Iterator[None]:
        """Context in which each head's output is multiplied before W_O.

        `multiplier` is [h] or [b, h], in the flat order of `grid`; 0 is the same as zero columns in
        W_O; None changes nothing.
        """
        with ExitStack() as hooks:
            for layer, output in enumerate(self.outputs if multiplier is not None else ()):
                hook = output.register_forward_pre_hook(_hook(multiplier[..., self._span(layer)]))
                hooks.enter_context(hook)
            yield

    def recorded(self) -> AbstractContextManager[dict[nn.Module, Tensor]]:
        """Context that gives what enters each layer, the first one first."""
        return watch_inputs(self._layers)

    @contextmanager
    def resumed(self, layer: int, states: Tensor) -> Iterator[None]:
        """Context in which the model begins at a layer, which `states` enter, [b, q, width].

        Its output is that of all layers wherever these states are what the layers below give.
        """
        first = self._layers[layer]
        self._stack.layer = self._layers[layer:]
        try:
            with first.register_forward_pre_hook(lambda _, inputs: (states, *inputs[1:])):
                yield
        finally:
            self._stack.layer = self._layers

    def first_masked(self, multiplier: Tensor) -> int:
        """The lowest layer of which a multiplier [h] is not 1; the last one where all are."""
        layers = range(len(self.outputs))
        touched = (layer for layer in layers if (multiplier[self._span(layer)] != 1).any())
        return next(touched, layers[-1])

    def _span(self, layer: int) -> slice:
        return self.grid.span("enc_self", layer)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device


def _hook(multiplier: Tensor) -> Callable[[nn.Module, tuple[Tensor]], tuple[Tensor]]:
    """What multiplies the heads of one layer, [h of the layer] or [b, h of the layer]."""

    def multiply(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        context, *others = inputs  # [b, q, h · e]
        by_head = context.unflatten(-1, (multiplier.shape[-1], -1))
        scaled = by_head * multiplier.to(context.dtype)[..., None, :, None]
        return (scaled.flatten(-2), *others)

    return multiply
