"""Head multiplier on a Hugging Face encoder with a classification head.

Layers below the first masked one give the same states under every mask, so their output can be
kept. Letters in shapes: b sentences, q positions, h heads of the model.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.model.observed import watch_inputs
from headcount_hf.hooks.multiplied import find_outputs, multiplied_heads

# Names of W_O in BERT, RoBERTa, ELECTRA and similar models, and in DistilBERT.
_OUTPUTS = r"(?:encoder\.layer\.(\d+)\.attention\.output\.dense|"
_OUTPUTS += r"transformer\.layer\.(\d+)\.attention\.out_lin)$"


class HookedEncoder:
    """An encoder whose heads, all of type `enc_self`, can be multiplied."""

    def __init__(self, model: nn.Module, heads: int):
        """Find W_O in layers of `heads` heads. Raises UserError for an unknown architecture."""
        self.model = model
        names = find_outputs(model, _OUTPUTS)
        if not names or sorted(names) != list(range(len(names))):
            raise UserError(
                f"{type(model).__name__}: expected the attention of a BERT, RoBERTa, ELECTRA or "
                f"DistilBERT, found {len(names)} such layers; take another model"
            )
        for name, module in model.named_modules():  # ConvBERT's convolution enters W_O, too
            if (own := getattr(module, "num_attention_heads", heads)) != heads:
                raise UserError(
                    f"{type(model).__name__}: expected {heads} heads in {name}, as its "
                    f"configuration says, found {own}; take another model"
                )
        # The module that runs all layers.
        self._stack = model.get_submodule(names[0].partition(".layer.")[0])
        self._layers = self._stack.layer
        self.outputs = [model.get_submodule(names[layer]) for layer in sorted(names)]
        self.grid = HeadGrid({"enc_self": (heads,) * len(names), "dec_self": (), "dec_enc": ()})

    def multiplied(self, multiplier: Tensor | None) -> AbstractContextManager[None]:
        """Return a context with multiplied heads, as `multiplied_heads` does.

        `multiplier` is [h] or [b, h], in the flat order of `grid`.
        """
        spans = ((output, self._span(layer)) for layer, output in enumerate(self.outputs))
        return multiplied_heads(spans, multiplier)

    def recorded(self) -> AbstractContextManager[dict[nn.Module, Tensor]]:
        """Return a context that records the input of every layer, in order."""
        return watch_inputs(self._layers)

    @contextmanager
    def resumed(self, layer: int, states: Tensor) -> Iterator[None]:
        """Run the model in this context from a layer on, which reads `states` [b, q, width]."""
        first = self._layers[layer]
        self._stack.layer = self._layers[layer:]
        try:
            with first.register_forward_pre_hook(lambda _, inputs: (states, *inputs[1:])):
                yield
        finally:
            self._stack.layer = self._layers

    def first_masked(self, multiplier: Tensor) -> int:
        """Return the lowest layer with a multiplier [h] other than 1, or else the last layer."""
        layers = range(len(self.outputs))
        masked = (layer for layer in layers if (multiplier[self._span(layer)] != 1).any())
        return next(masked, layers[-1])

    def _span(self, layer: int) -> slice:
        return self.grid.span("enc_self", layer)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.model.parameters()).device
