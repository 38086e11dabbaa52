"""Slopes of a sentence's loss along the multipliers of heads, ∂L(x)/∂ξ, and their integral.

Letters in shapes: b sentences, h heads of the model in the flat order of `HeadGrid`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
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
    """∂L(x)/∂ξ of each sentence of a batch, [b, h], where every multiplier is `at`; and the loss.

    The loss is the batch's sum. Dropout is off.
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
    done: Callable[[int], object] = lambda sentences: None,
) -> np.ndarray:
    """I_h = −∫₀¹ E[∂L(x; ξ = α · 1)/∂ξ_h] dα of every head, [heads]; nats per sentence.

    Larger: the head lowers the loss by more; below 0 it raises it. The values add up to
    L(0) − L(1), the loss without any head minus that with all, but for the error of the
    quadrature: the midpoints of `points` equal parts, each as long as a pass for importance.
    `done` is told the number of sentences finished, once for each point.

    Source: Sundararajan et al. 2017, section 3, with the multipliers in place of an input's
    features; Hao et al. 2021 integrate over the weights of attention.
    """
    total = np.zeros(model.grid.size)
    for batch in in_order(text, settings.batch_tokens, first_device(model)):
        for point in range(points):
            at = (point + 0.5) / points
            slopes, _ = sentence_slopes(model, batch, at=at)
            total -= slopes.double().sum(0).cpu().numpy()
            done(len(batch.indices))
    return total / (points * len(text))


@contextmanager
def measured(model: Transformer, precision: str = "fp32") -> Iterator[None]:
    """Context in which a model has dropout off and only multipliers are differentiated.

    Products are in the number format `precision`. Every module's mode and every weight's
    `requires_grad` come back at the end.
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
    """Multipliers [b, h], all of one value, to differentiate by.

    Sentences do not touch each other, so row b of a derivative belongs to sentence b alone.
    """
    weight = next(model.parameters())
    shape = (len(batch.indices), model.grid.size)
    return torch.full(shape, at, dtype=weight.dtype, device=weight.device, requires_grad=True)
