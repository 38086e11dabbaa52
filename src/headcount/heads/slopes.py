"""Slopes of a sentence's loss along the multipliers of heads, ∂L(x)/∂ξ, and their integral.

Letters in shapes: b sentences, h heads of the model in the flat order of `HeadGrid`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.heads.drawn_text import Done
from headcount.model.loss import summed_loss
from headcount.model.machine import number_format
from headcount.model.transformer import Transformer, first_device


def sentence_slopes(
    model: Transformer,
    batch: Batch,
    smoothing: float = 0.0,
    at: float = 1.0,
    precision: str = "fp32",
) -> tuple[Tensor, Tensor]:
    """Return ∂L(x)/∂ξ [b, h] of a batch where every multiplier is `at`, and the summed loss.

    Dropout is off.
    """
    multiplier = multipliers(model, batch, at)
    with measured(model, precision):
        loss = summed_loss(model, batch, multiplier, smoothing)
    (slopes,) = torch.autograd.grad(loss, multiplier)
    return slopes, loss


def integrated_gradients(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    points: int,
    done: Done = lambda sentences: None,
) -> np.ndarray:
    """Return −∫₀¹ E[∂L(x; ξ = α · 1)/∂ξ_h] dα of every head, [heads]; nats per sentence.

    Above 0 the head lowers the loss, below 0 it raises the loss. The integral is a sum over the
    midpoints of `points` equal parts. Up to the error of this sum, the values add up to the loss
    without any head minus the loss with all. `done` is called once for each batch and point.

    Source: Sundararajan et al. 2017, section 3, with the multipliers in place of an input's
    features. Hao et al. 2021 integrate over the weights of attention.
    """
    total = np.zeros(model.grid.size)
    for batch in in_order(text, settings.batch_tokens, first_device(model)):
        for point in range(points):
            slopes, _ = sentence_slopes(model, batch, at=(point + 0.5) / points)
            total -= slopes.double().sum(0).cpu().numpy()
            done(len(batch.indices))
    return total / (points * len(text))


@contextmanager
def measured(model: Transformer, precision: str = "fp32") -> Iterator[None]:
    """Turn dropout off and differentiate only multipliers, with products in a number format.

    Every module's mode and every weight's `requires_grad` are restored at the end.
    """
    modes = [(module, module.training) for module in model.modules()]
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    model.eval().requires_grad_(False)
    try:
        with torch.enable_grad(), number_format(precision, first_device(model)):
            yield
    finally:
        for module, training in modes:
            module.training = training
        for weight in trained:
            weight.requires_grad_(True)


def multipliers(model: Transformer, batch: Batch, at: float = 1.0) -> Tensor:
    """Return multipliers [b, h] of one value, to differentiate by.

    Sentences do not touch each other, so row b of a derivative belongs to sentence b alone.
    """
    weight = next(model.parameters())
    shape = (len(batch.indices), model.grid.size)
    return torch.full(shape, at, dtype=weight.dtype, device=weight.device, requires_grad=True)
