"""Softmax, dropout and the largest of many sums, faster on a CPU than torch's own functions."""

import math

import torch
from torch import Tensor
from torch.nn import functional

_VECTOR = 16  # torch computes the softmax of shorter rows one number at a time
_STEPS = 1 << 16  # a 16-bit draw decides about one element
_BLOCK = 64  # values that share a maximum while the largest are looked for


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


def largest(values: Tensor, added: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest `count` sums of values [b, m, v] and added [b, m], and places in m · v.

    Only the `count` blocks with the largest maxima are searched, which contain all of these sums.
    """
    _, rows, size = values.shape
    blocks = size // _BLOCK
    if rows * blocks <= count:
        return (values + added[..., None]).flatten(1).topk(min(count, rows * size))
    whole = values[..., : blocks * _BLOCK].unflatten(2, (blocks, _BLOCK))
    chosen = (whole.amax(3) + added[..., None]).flatten(1).topk(count, sorted=False).indices
    first = chosen // blocks * size + chosen % blocks * _BLOCK
    inside = first[..., None] + torch.arange(_BLOCK, device=values.device)
    rest = torch.arange(rows * size, device=values.device).view(rows, size)[:, blocks * _BLOCK :]
    places = torch.cat((inside.flatten(1), rest.flatten().expand(len(values), -1)), dim=1)
    sums = values.flatten(1).gather(1, places) + added.gather(1, places // size)
    best, which = sums.topk(count)
    return best, places.gather(1, which)
