"""Importance of attention heads: the derivative of the loss with respect to their multipliers.

Letters in shapes: b sentences, q query positions, h heads of the model in the flat order of
`HeadGrid`, e width of one head.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn

from headcount.base.addresses import HeadGrid
from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.data.vocabulary import PAD
from headcount.model.loss import summed_loss, token_losses
from headcount.model.machine import batches_of, number_format
from headcount.model.transformer import Transformer, first_device


def batch_importance(
    model: Transformer,
    batch: Batch,
    unit: str = "sentence",
    precision: str = "fp32",
    smoothing: float = 0.0,
) -> tuple[Tensor, float]:
    """Importance of every head for one batch, [h], and the batch's summed loss in nats.

    Importance: mean over sentences of |∂L(x)/∂ξ| at ξ = 1, L(x) summed over the sentence's target
    tokens; nats per sentence, larger means more important. `unit`: what the absolute value is taken
    of, as `measure_importance` has it, but for the token; with `none`, heads that lower the loss
    are above 0. Dropout is off. The model is left as it was: mode, weights, their gradients, and
    the random state too. `precision`: fp32 or bf16; `smoothing`: label smoothing ε of the loss.

    Source: Sun et al. 2020, equation 1, on a single batch (their algorithm 2, steps 1 and 2).
    """
    ones = _ones(model, batch)
    kept = _kept_contexts(model) if unit == "position" else nullcontext([])
    with measured(model), number_format(precision, first_device(model)), kept as contexts:
        total = summed_loss(model, batch, ones, smoothing)
    scale = torch.ones_like(ones[:, :1])
    found = _summed(total, ones, contexts, model, unit, scale)
    return found / len(batch.indices), total.item()


def measure_importance(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    smoothing: float,
    done: Callable[[int], object] = lambda sentences: None,
) -> np.ndarray:
    """Importance of every head over a text, [h], before normalisation; nats per sentence.

    The mean over sentences of what `settings.abs` names:

    - `sentence`: |∂L(x)/∂ξ|, L(x) the loss of sentence x.
    - `token`: Σ_t |∂ℓ_t/∂ξ| over its target tokens' losses ℓ_t. Exact, and so with as many
      backward passes per batch as its longest target has tokens.
    - `position`: Σ_i |c_i · ∂L(x)/∂c_i| over the query positions i of the head's own layer, c_i
      being the head's output there; what the code of Michel et al. 2019 computes.
    - `batch`: |Σ_x ∂L(x)/∂ξ| of each batch, summed over the batches and divided by the number of
      sentences like the others; the only one that depends on `batch_tokens`.
    - `none`: −∂L(x)/∂ξ, below 0 for a head without which the loss would fall.

    Larger means more important. With `reduction: mean`, L(x) is the mean of the ℓ_t instead of
    their sum. Label smoothing `smoothing` counts only if `settings.loss` is `smoothed`. `done` is
    told the number of sentences finished. Raises UserError if the text is empty.

    Source: Sun et al. 2020, equations 1 and 2; Michel et al. 2019 have the same.
    """
    smoothing = smoothing if settings.loss == "smoothed" else 0.0
    total = np.zeros(model.grid.size)
    with batches_of("importance", settings.batch_tokens):
        for batch in in_order(text, settings.batch_tokens, first_device(model)):
            total += _sum_over_sentences(model, batch, settings, smoothing).double().cpu().numpy()
            done(len(batch.indices))
    return total / len(text)


def normalise_layers(importance: np.ndarray, grid: HeadGrid) -> np.ndarray:
    """Importance [h], that of each layer and kind divided by its L2 norm; zeros stay zeros.

    Source: Michel et al. 2019.
    """
    scaled = importance.copy()
    for _, _, span in grid.layers():
        scaled[span] /= np.linalg.norm(scaled[span]) or 1.0
    return scaled


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


def _ones(model: Transformer, batch: Batch) -> Tensor:
    """Multipliers [b, h] to differentiate by.

    Sentences do not touch each other, so row b of a derivative belongs to sentence b alone.
    """
    weight = next(model.parameters())
    shape = (len(batch.indices), model.grid.size)
    return torch.ones(shape, dtype=weight.dtype, device=weight.device, requires_grad=True)


def _sum_over_sentences(
    model: Transformer, batch: Batch, settings: ImportanceSettings, smoothing: float
) -> Tensor:
    """What `settings.abs` names, [h], summed over the sentences of a batch."""
    ones = _ones(model, batch)
    lengths = (batch.tgt_out != PAD).sum(1, keepdim=True)
    scale = 1 / lengths if settings.reduction == "mean" else torch.ones_like(lengths)
    if settings.abs == "token":
        return _by_token(model, batch, ones, scale, smoothing)
    with measured(model), _kept_contexts(model) as contexts:
        loss = summed_loss(model, batch, ones, smoothing)
    return _summed(loss, ones, contexts, model, settings.abs, scale)


def _summed(
    loss: Tensor,
    ones: Tensor,
    contexts: list[Tensor],
    model: Transformer,
    unit: str,
    scale: Tensor,
) -> Tensor:
    """What a unit names, [h], of a batch's loss, summed over sentences, each times its scale."""
    if unit == "position":
        return _by_position(loss, contexts, model, scale)
    (slopes,) = torch.autograd.grad(loss, ones)
    slopes *= scale
    if unit == "sentence":
        return slopes.abs().sum(0)
    return slopes.sum(0).abs() if unit == "batch" else -slopes.sum(0)


def _by_token(
    model: Transformer, batch: Batch, ones: Tensor, scale: Tensor, smoothing: float
) -> Tensor:
    """Σ_t |∂ℓ_t/∂ξ| over all target tokens, [h], each sentence times its scale [b, 1].

    One backward pass per target position serves all sentences at once: row b of the derivative
    of Σ_b ℓ_(b,t) holds the token of sentence b alone.
    """
    with measured(model):
        losses = token_losses(model, batch, ones, smoothing)
    positions = batch.real % batch.tgt_out.shape[1]
    total = torch.zeros_like(ones[0])
    for position in range(batch.tgt_out.shape[1]):
        loss = losses[positions == position].sum()
        (slopes,) = torch.autograd.grad(loss, ones, retain_graph=True)
        total += (slopes.abs() * scale).sum(0)
    return total


def _by_position(loss: Tensor, contexts: list[Tensor], model: Transformer, scale: Tensor) -> Tensor:
    """Σ_i |c_i · ∂L/∂c_i| over the query positions of all sentences, [h], each times its scale.

    At padded positions the derivative is 0: nothing that counts attends to them.
    """
    slopes = torch.autograd.grad(loss, contexts)
    total = loss.new_zeros(model.grid.size)
    for (kind, layer, module), context, slope in zip(
        model.attentions(), contexts, slopes, strict=True
    ):
        products = (context.detach() * slope).unflatten(2, (module.heads, module.d_head))
        by_head = products.sum(3).abs().sum(1)  # [b, q, h, e] to [b, h]
        total[model.grid.span(kind, layer)] = (by_head * scale).sum(0)
    return total


@contextmanager
def _kept_contexts(model: Transformer) -> Iterator[list[Tensor]]:
    """Collects what enters W_O, [b, q, h · e], in the order of `attentions`, during a forward."""
    modules = [module for _, _, module in model.attentions()]
    kept: list[Tensor] = [torch.empty(0)] * len(modules)

    def keeper(number: int) -> Callable:
        def keep(_: nn.Module, inputs: tuple[Tensor]) -> None:
            kept[number] = inputs[0]

        return keep

    handles = [m.output.register_forward_pre_hook(keeper(n)) for n, m in enumerate(modules)]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()
