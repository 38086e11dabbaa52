"""Output layer, softmax and label-smoothed cross-entropy in one, a few rows at a time.

Scores over the vocabulary are by far the largest tensor of a training step. Here each part of them
is made, turned into its loss and its gradient while it is still in the processor's cache, and
overwritten by the next part. Letters in shapes: t target tokens, d model width, v vocabulary.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headcount.model.kernels.matmul import ROWS, matmul_transposed, weight_gradient

_BYTES = {"cpu": 16 << 20, "cuda": 512 << 20}  # scores at once: in a cache; enough to fill a GPU


def rows_at_once(vocabulary: int, device: torch.device) -> int:
    """Number of target tokens whose scores over the vocabulary are held at one time."""
    rows = _BYTES[device.type] // (4 * vocabulary)
    return max(1, rows - rows % ROWS if rows > ROWS else rows)


class FusedLoss(torch.autograd.Function):
    """Sum over tokens of (1 − ε) · cross-entropy + ε · its mean over the vocabulary, in nats.

    The gradients are computed with the loss, so that the scores need not be kept or made again.
    """

    @staticmethod
    def forward(ctx, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        """Loss of states [t, d] with output weights [v, d] and targets [t]; a scalar."""
        ctx.needs = ctx.needs_input_grad[:2]
        kind = _product_type(states)
        words = weight.to(kind)
        parts = _Gradients(states, weight, ctx.needs)
        loss = torch.zeros((), dtype=parts.exact, device=states.device)
        rows = rows_at_once(len(weight), states.device)
        for start in range(0, len(states), rows):
            part = slice(start, start + rows)
            hidden, wanted = states[part].to(kind), targets[part, None]
            logs = matmul_transposed(hidden, words).to(parts.exact).log_softmax(-1)
            loss -= (1 - smoothing) * logs.gather(1, wanted).sum() + smoothing * logs.mean(-1).sum()
            if any(ctx.needs):
                scores = _score_gradient(logs, wanted, smoothing).to(kind)
                parts.add(part, scores, hidden, words)
        ctx.save_for_backward(*(g for g in (parts.states, parts.weight) if g is not None))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Both gradients times that of the sum."""
        saved = iter(ctx.saved_tensors)
        states, weight = (next(saved) * upstream if need else None for need in ctx.needs)
        return states, weight, None, None


class _Gradients:
    """Derivatives of the summed loss by states [t, d] and weights [v, d], where they are needed."""

    def __init__(self, states: Tensor, weight: Tensor, needs: tuple[bool, bool]):
        self.exact = torch.promote_types(states.dtype, torch.float32)
        self.states = torch.empty_like(states) if needs[0] else None
        self.weight = torch.zeros_like(weight) if needs[1] else None

    def add(self, part: slice, scores: Tensor, states: Tensor, words: Tensor) -> None:
        """Take in some rows, given the derivatives [rows, v] by their scores."""
        if self.states is not None:
            self.states[part] = matmul_transposed(scores, words.t())
        if self.weight is None:
            return
        # In a short format each part's sum is rounded, the sum of the parts is not.
        self.weight += weight_gradient(scores, states)


def _score_gradient(logs: Tensor, wanted: Tensor, smoothing: float) -> Tensor:
    """Softmax minus the smoothed target, [rows, v], written over the log-probabilities."""
    gradient = logs.exp_()
    if smoothing:
        gradient -= smoothing / gradient.shape[1]
    off = torch.full_like(wanted, smoothing - 1, dtype=logs.dtype)
    return gradient.scatter_add_(1, wanted, off)


def _product_type(states: Tensor) -> torch.dtype:
    """Number format of matrix products here: autocast's, where that is on."""
    device = states.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
