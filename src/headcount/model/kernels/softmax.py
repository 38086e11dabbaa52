"""Softmax over short rows: a CPU takes sixteen numbers of a row at once, or else one by one."""

import math

import torch
from torch import Tensor
from torch.nn import functional

_VECTOR = 16


def softmax(scores: Tensor, dtype: torch.dtype) -> Tensor:
    """Softmax over the last dimension; on a CPU short rows are filled up with -∞ meanwhile."""
    length = scores.shape[-1]
    if length < _VECTOR and scores.device.type == "cpu":
        scores = functional.pad(scores, (0, _VECTOR - length), value=-math.inf)
    return scores.softmax(-1, dtype=dtype)[..., :length]


def softmax_columns(scores: Tensor) -> Tensor:
    """Softmax over each row [rows, t], without a gradient; of short rows, many rows at once."""
    if scores.shape[1] < _VECTOR:
        return scores.t().contiguous().softmax(0).t().contiguous()
    return scores.softmax(1)
