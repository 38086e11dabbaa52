"""Our one head multiplier on a Hugging Face encoder with a classification head.

The library has no head masks of its own any more. Layers below the first masked one are the same
under every mask: what leaves them can be kept. Letters in shapes: b sentences, q positions, h heads
of the model.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.model.transformer import watch_inputs
from headcount_hf.hooks.multiplied import find_outputs, multiplied_heads

# Where W_O is: BERT, RoBERTa, ELECTRA and their like; DistilBERT.
_OUTPUTS = r"(?:encoder\.layer\.(\d+)\.attention\.output\.dense|"
_OUTPUTS += r"transformer\.layer\.(\d+)\.attention\.out_lin)$"


class HookedEncoder:
    """An encoder whose heads can be multiplied; all of them are of the kind `enc_self`."""

    def __init__(self, model: nn.Module, heads: int):
        """`heads`: of each layer. Raises UserError for a model whose layers are not found."""
        self.model = model
        found = find_outputs(model, _OUTPUTS)
        if not found or sorted(found) != list(range(len(found))):
            raise UserError(
                f"{type(model).__name__}: expected the attention of a BERT, RoBERTa, ELECTRA or "
                f"DistilBERT, found {len(found)} layers that look like one; name another model"
            )
        _check_heads(model, heads)
        stack = found[0].partition(".layer.")[0]
        self._stack = model.get_submodule(stack)  # which runs its `layer`
        self._layers = self._stack.layer
        self.outputs = [model.get_submodule(found[layer]) for layer in sorted(found)]
        self.grid = HeadGrid({"enc_self": (heads,) * len(found), "dec_self": (), "dec_enc": ()})

    def multiplied(self, multiplier: Tensor | None) -> AbstractContextManager[None]:
        """Context in which each head's output is multiplied before W_O; see `multiplied_heads`.

        `multiplier` is [h] or [b, h], in the flat order of `grid`.
        """
        spans = ((output, self._span(layer)) for layer, output in enumerate(self.outputs))
        return multiplied_heads(spans, multiplier)

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
        """Return the lowest layer of which a multiplier [h] is not 1; the last one without any."""
        layers = range(len(self.outputs))
        touched = (layer for layer in layers if (multiplier[self._span(layer)] != 1).any())
        return next(touched, layers[-1])

    def _span(self, layer: int) -> slice:
        return self.grid.span("enc_self", layer)

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return next(self.model.parameters()).device


def _check_heads(model: nn.Module, heads: int) -> None:
    """Raise UserError for attention of other than `heads` heads, as ConvBERT's.

    What a convolution gives enters W_O beside the heads, and is none.
    """
    for name, module in model.named_modules():
        own = getattr(module, "num_attention_heads", heads)
        if own != heads:
            raise UserError(
                f"{type(model).__name__}: expected {heads} heads in {name}, as its configuration "
                f"says, found {own}; what else enters W_O is of no head, so name another model"
            )
