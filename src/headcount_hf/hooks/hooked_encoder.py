"""Head multiplier on a Hugging Face encoder with a classification head."""

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
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
        self.outputs = [model.get_submodule(names[layer]) for layer in sorted(names)]
        self.grid = HeadGrid({"enc_self": (heads,) * len(names), "dec_self": (), "dec_enc": ()})

    def multiplied(self, multiplier: Tensor | None) -> AbstractContextManager[None]:
        """Return a context that multiplies heads as `multiplied_heads` does."""
        layers = enumerate(self.outputs)
        spans = ((output, self.grid.span("enc_self", layer)) for layer, output in layers)
        return multiplied_heads(spans, multiplier)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.model.parameters()).device
