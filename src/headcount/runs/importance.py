"""Importance of attention heads: the derivative of the loss with respect to their multipliers.

Letters in shapes: b sentences, h heads of the model in the flat order of `HeadGrid`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from headcount.data.batches import Batch
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer, first_device
from headcount.runs.machine import number_format


def batch_importance(
    model: Transformer,
    batch: Batch,
    signed: bool = False,
    precision: str = "fp32",
    smoothing: float = 0.0,
) -> tuple[Tensor, float]:
    """Importance of every head for one batch, [h], and the batch's summed loss in nats.

    Importance: mean over sentences of |∂L(x)/∂ξ| at ξ = 1, L(x) summed over the sentence's target
    tokens; nats per sentence, larger means more important. `signed`: the mean of −∂L(x)/∂ξ
    instead; above 0 for heads that lower the loss. Dropout is off. The model is left as it was:
    mode, weights, their gradients, and the random state too. `precision`: fp32 or bf16;
    `smoothing`: label smoothing ε of the loss.

    Source: Sun et al. 2020, equation 1, on a single batch (their algorithm 2, steps 1 and 2).
    """
    with measured(model), number_format(precision, first_device(model)):
        losses, ones = _losses(model, batch, smoothing)
        total = losses.sum()
    (slopes,) = torch.autograd.grad(total, ones)
    return (-slopes if signed else slopes.abs()).mean(0), total.item()


@contextmanager
def measured(model: Transformer) -> Iterator[None]:
    """Context in which a model has dropout off and only multipliers are differentiated.

    Every module's mode and every weight's `requires_grad` come back at the end.
    """
    modes = [(module, module.training) for module in model.modules()]
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    model.eval().requires_grad_(False)
    try:
        with torch.enable_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
        for weight in trained:
            weight.requires_grad_(True)


def _losses(model: Transformer, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """Loss of every real target token, and the multipliers of one [b, h] that it depends on.

    Sentences do not touch each other, so row b of a derivative belongs to sentence b alone.
    """
    weight = next(model.parameters())
    shape = (len(batch.ids), model.grid.size)
    ones = torch.ones(shape, dtype=weight.dtype, device=weight.device, requires_grad=True)
    return token_losses(model, batch.to(weight.device), ones, smoothing), ones
