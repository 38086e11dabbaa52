"""Dropout that draws its random bits four elements at a time on a CPU."""

import torch
from torch import Tensor
from torch.nn import functional

_STEPS = 1 << 16  # a 16-bit draw decides about one element


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """Return states with a share `rate` of elements at 0, the others scaled to keep the mean.

    On a CPU the rate is rounded to a multiple of 2^-16 and one 64-bit random number serves four
    elements. `torch.nn.functional.dropout` draws one per element, a sixth of a training step. It is
    used elsewhere, and under torch.compile.
    """
    if not training or rate == 0:
        return states
    if states.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(states, rate, training)
    dropped = min(round(rate * _STEPS), _STEPS - 1)
    draws = torch.empty((states.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    bits = draws.view(torch.int16)[: states.numel()].view(states.shape)
    # In place, since only then torch compares by vector instructions.
    kept = bits.ge_(dropped - _STEPS // 2).to(states.dtype)
    return states * kept.mul_(_STEPS / (_STEPS - dropped))
