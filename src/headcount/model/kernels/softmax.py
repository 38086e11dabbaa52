"""Softmax over short rows, which a CPU computes one number at a time below sixteen."""

import math

import torch
from torch import Tensor
from torch.nn import functional

_VECTOR = 16


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
