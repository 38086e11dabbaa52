"""Dropout that draws its random bits four elements at a time where that is faster."""

import torch
from torch import Tensor
from torch.nn import functional

_STEPS = 1 << 16  # a 16-bit draw decides about one element


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """States with a share `rate` of elements at 0 and the rest scaled so that the mean stays.

    On a CPU the rate is rounded to a multiple of 2^-16, and torch's generator is asked for one
    64-bit number per four elements; `torch.nn.functional.dropout` asks for one per element, which
    made it a sixth of a training step. Elsewhere, and under torch.compile, torch's own is used.
    """
    if not training or rate == 0:
        return states
    if states.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(states, rate, training)
    dropped = min(round(rate * _STEPS), _STEPS - 1)
    draws = torch.empty((states.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    bits = draws.view(torch.int16)[: states.numel()].view(states.shape)
    # In place: torch compares into the numbers' own type, not into bool, by vector instructions.
    kept = bits.ge_(dropped - _STEPS // 2).to(states.dtype)
    return states * kept.mul_(_STEPS / (_STEPS - dropped))
