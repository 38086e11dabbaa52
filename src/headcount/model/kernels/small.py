"""Softmax and dropout, faster on a CPU than torch's own functions."""

import math

import torch
from torch import Tensor
from torch.nn import functional

_VECTOR = 16  # torch computes the softmax of shorter rows one number at a time
_STEPS = 1 << 16  # a 16-bit draw decides about one element


def softmax(scores: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the softmax over the last dimension. On a CPU short rows are padded with -∞."""
    length = scores.shape[-1]
    if length < _VECTOR and scores.device.type == "cpu":
        scores = functional.pad(scores, (0, _VECTOR - length), value=-math.inf)
    return scores.softmax(-1, dtype=dtype)[..., :length]


def softmax_columns(scores: Tensor) -> Tensor:
    """Return the softmax over rows [rows, t], without a gradient."""
    if scores.shape[1] < _VECTOR:
        return scores.t().contiguous().softmax(0).t().contiguous()
    return scores.softmax(1)


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """Return states with a share `rate` of elements at 0, the others scaled to keep the mean.

    On a CPU one 64-bit random number serves four elements, and the rate is a multiple of 2^-16.
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
