"""Head multiplier for modules of a library: a hook before W_O multiplies its input.

Letters in shapes: b sentences, q positions, h heads of the model, e width of one head.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.errors import UserError

# Names of W_O in BERT, RoBERTa, ELECTRA and similar models, and in DistilBERT.
_OUTPUTS = r"(?:encoder\.layer\.(\d+)\.attention\.output\.dense|"
_OUTPUTS += r"transformer\.layer\.(\d+)\.attention\.out_lin)$"


def find_outputs(model: nn.Module, pattern: str) -> dict[int, str]:
    """Return the name of W_O by layer, which is a group of the pattern."""
    matches = (re.search(pattern, name) for name, _ in model.named_modules())
    return {int(next(filter(None, match.groups()))): match.string for match in matches if match}


@dataclass(frozen=True)
class Joined:
    """The heads of one layer, which enter its W_O."""

    output: nn.Module
    heads: int
    d_head: int


class Hooked(nn.Module):
    """A model of a library whose heads can be multiplied."""

    def __init__(self, model: nn.Module, joined: Mapping[str, Sequence[Joined]]):
        """`joined`: W_O of every layer by attention type."""
        super().__init__()
        self.model, self._joined = model, joined
        self.grid = HeadGrid({k: tuple(w.heads for w in joined.get(k, ())) for k in KINDS})

    def attentions(self) -> Iterator[tuple[str, int, Joined]]:
        """Yield attention type, layer and W_O, in the flat order of the heads."""
        for kind in KINDS:
            for layer, joined in enumerate(self._joined.get(kind, ())):
                yield kind, layer, joined

    @contextmanager
    def multiplied(self, multiplier: Tensor | None, beams: int = 1) -> Iterator[None]:
        """Multiply the output of every head before W_O in this context.

        `multiplier` is [h] or [b, h]; in a search with `beams` hypotheses, rows i · beams on are of
        sentence i.
        """
        with ExitStack() as hooks:
            for kind, layer, joined in self.attentions() if multiplier is not None else ():
                factors = multiplier[..., self.grid.span(kind, layer)]
                hook = partial(_multiply, factors, beams)
                # First, so that other hooks see the multiplied input.
                hooks.enter_context(joined.output.register_forward_pre_hook(hook, prepend=True))
            yield


def _multiply(factors: Tensor, beams: int, _: nn.Module, inputs: tuple) -> tuple:
    """Return inputs of W_O with heads multiplied by factors [h of the layer] or [b, h of it]."""
    context, *others = inputs  # [rows, q, h · e], with one dimension more in ProphetNet
    factors, heads = factors.to(context.device), factors.shape[-1]
    if factors.ndim == 2:
        rows, sentences = len(context), len(factors)
        if rows not in (sentences, sentences * beams):
            raise ValueError(
                f"head multiplier: expected a row for every sentence, found {sentences} for "
                f"{rows} rows of a search with {beams} beams"
            )
        factors = factors.repeat_interleave(rows // sentences, 0)
        factors = factors.unflatten(0, (-1, *[1] * (context.ndim - 2)))
    finer = torch.promote_types(context.dtype, torch.float32)  # in bf16 0.9985 is 1
    scaled = context.unflatten(-1, (heads, -1)) * factors[..., None].to(finer)
    return (scaled.flatten(-2).to(context.dtype), *others)


class HookedEncoder(Hooked):
    """An encoder whose heads, all of type `enc_self`, can be multiplied."""

    def __init__(self, model: nn.Module, heads: int):
        """Find W_O in layers of `heads` heads. Raises UserError for an unknown architecture."""
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
        outputs = [model.get_submodule(names[layer]) for layer in sorted(names)]
        joined = [Joined(output, heads, output.in_features // heads) for output in outputs]
        super().__init__(model, {"enc_self": joined})
