"""Our one head multiplier on modules of others: a hook before each W_O multiplies what enters it.

Letters in shapes: b sentences, q positions, h heads of the model, e width of one head.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn


def find_outputs(model: nn.Module, pattern: str) -> dict[int, str]:
    """Return the name of W_O of every layer, by layer, which is a group of the pattern."""
    found = {}
    for name, _ in model.named_modules():
        if match := re.search(pattern, name):
            found[next(int(group) for group in match.groups() if group)] = name
    return found


@contextmanager
def multiplied_heads(
    outputs: Iterable[tuple[nn.Module, slice]], multiplier: Tensor | None, beams: int = 1
) -> Iterator[None]:
    """Context in which each head's output is multiplied before W_O.

    `outputs`: every W_O, with the place of its heads in the flat order. `multiplier` is [h] or
    [b, h]; 0 is the same as zero columns in W_O; None changes nothing. In a search with `beams`
    hypotheses a sentence, sentence i has the rows from i · beams on. Raises ValueError where a
    module gets other rows than these.
    """
    with ExitStack() as hooks:
        for output, span in outputs if multiplier is not None else ():
            hook = _hook(multiplier[..., span], beams)
            # Before those that watch what enters W_O, which is the multiplied output.
            hooks.enter_context(output.register_forward_pre_hook(hook, prepend=True))
        yield


def _hook(multiplier: Tensor, beams: int) -> Callable[[nn.Module, tuple], tuple]:
    """Return a hook that multiplies the heads of one layer, [h of the layer] or [b, h of it]."""

    def multiply(_: nn.Module, inputs: tuple) -> tuple:
        context, *others = inputs  # [rows, q, h · e]; ProphetNet's has one dimension more
        factors = multiplier.to(context.device)
        if factors.ndim == 2:
            factors = _for_rows(factors, len(context), beams)
            factors = factors.unflatten(0, (-1, *[1] * (context.ndim - 2)))
        finer = torch.promote_types(context.dtype, torch.float32)  # in bf16 0.9985 is 1
        by_head = context.unflatten(-1, (multiplier.shape[-1], -1))
        scaled = by_head * factors[..., None].to(finer)
        return (scaled.flatten(-2).to(context.dtype), *others)

    return multiply


def _for_rows(factors: Tensor, rows: int, beams: int) -> Tensor:
    """Return the factors [b, h of the layer] of every row of a search."""
    sentences = len(factors)
    if rows not in (sentences, sentences * beams):
        raise ValueError(
            f"head multiplier: expected a row for each sentence, found {sentences} for {rows} rows "
            f"of a search with {beams} beams"
        )
    return factors.repeat_interleave(rows // sentences, 0)
