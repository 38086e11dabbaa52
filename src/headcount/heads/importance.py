"""Importance of attention heads: the derivative of the loss by their multipliers.

Models of another library are measured too, see `headcount_hf/hooks/hooked_folder.py`.

Letters in shapes: b sentences, q query positions, h heads of the model in the flat order of
`HeadGrid`, e width of one head.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_head_values
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.heads.drawn_text import Done, write_measured
from headcount.model.loss import summed_loss, token_losses
from headcount.model.machine import batches_of, number_format
from headcount.model.transformer import Transformer, first_device, watch_inputs
from headcount.model.units import UnitTransformer
from headcount.store.model_folder import ModelFolder, check_measured


def _measure_halves(
    model: Transformer, text: ParallelText, settings: ImportanceSettings, bar: tqdm
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return importance over a text and over each of its halves, and the sizes of the halves."""
    middle = len(text) // 2  # an odd pair is in the second half
    halves = text.part(range(middle)), text.part(range(middle, len(text)))
    first, second = (measure_importance(model, half, settings, bar.update) for half in halves)
    sizes = [len(half) for half in halves]
    whole = np.average([first, second], axis=0, weights=sizes)
    names = ("importance", "importance_first_half", "importance_second_half")
    return dict(zip(names, (whole, first, second), strict=True)), {"halves": sizes}


write_importance = partial(write_measured, _measure_halves)


def read_importance(path: Path, folder: ModelFolder, grid: HeadGrid) -> np.ndarray:
    """Return the importance of all heads, [heads]. Raises UserError for another model's file."""
    values = read_head_values(path, "importance", grid)
    check_measured(path, folder.weight_files, "scripts/importance.py")
    return values


class BatchImportance(NamedTuple):
    """Importance of every head for one batch, and the slopes and loss behind it."""

    importance: Tensor  # [h], mean over sentences; larger means more important
    slopes: Tensor  # [b, h], ∂L(x)/∂ξ; above 0, the head raises the loss
    loss: Tensor  # a scalar in nats, summed over target tokens


def batch_importance(
    model: Transformer,
    batch: Batch,
    unit: str = "sentence",
    precision: str = "fp32",
    smoothing: float = 0.0,
) -> BatchImportance:
    """Return the importance of every head for one batch, nats per sentence, without dropout.

    Source: Sun et al. 2020, equation 1, on a single batch (their algorithm 2, steps 1 and 2).
    """
    total, slopes, loss = _by_unit(model, batch, unit, smoothing, precision)
    return BatchImportance(total / len(batch.indices), slopes, loss.detach())


def measure_importance(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    done: Done = lambda sentences: None,
) -> np.ndarray:
    """Return the importance of every head over a text, [h], nats per sentence.

    It is the mean over sentences, with L(x) the loss of sentence x, of what `settings.abs` names:

    - `sentence`: |∂L(x)/∂ξ|.
    - `token`: Σ_t |∂ℓ_t/∂ξ| over the losses ℓ_t of its target tokens.
    - `position`: Σ_i |c_i · ∂L(x)/∂c_i| over the query positions i, with c_i the head's output.
      The code of Michel et al. 2019 computes this.
    - `batch`: |Σ_x ∂L(x)/∂ξ| of a batch. Only this one depends on `batch_tokens`.
    - `square`: (∂L(x)/∂ξ)², the diagonal of the Fisher information, nats².
    - `none`: −∂L(x)/∂ξ, below 0 for a head without which the loss would fall.

    Source: Sun et al. 2020, equations 1 and 2, the same as Michel et al. 2019. Squares: Kwon et al.
    2022, section 4.1.
    """
    total = np.zeros(model.grid.size)
    with batches_of("resources", settings.batch_tokens):
        for batch in in_order(text, settings.batch_tokens, first_device(model)):
            total += _by_unit(model, batch, settings.abs)[0].double().cpu().numpy()
            done(len(batch.indices))
    return total / len(text)


def normalise_layers(importance: np.ndarray, grid: HeadGrid) -> np.ndarray:
    """Return importance [h] divided by the L2 norm of its layer and kind (Michel et al. 2019)."""
    scaled = importance.copy()
    for _, _, span in grid.layers():
        scaled[span] /= np.linalg.norm(scaled[span]) or 1.0
    return scaled


_OF_SLOPES = {
    "sentence": lambda slopes: slopes.abs().sum(0),
    "square": lambda slopes: slopes.square().sum(0),
    "batch": lambda slopes: slopes.sum(0).abs(),
    "none": lambda slopes: -slopes.sum(0),
}


def _by_unit(
    model: Transformer, batch: Batch, unit: str, smoothing: float = 0.0, precision: str = "fp32"
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum over sentences [h] of a unit, slopes by sentence [b, h], and the loss."""
    if unit == "position" and isinstance(model, UnitTransformer):
        raise UserError(
            "importance.abs: expected another value for units than heads, found position"
        )
    if unit in _OF_SLOPES:
        slopes, loss = sentence_slopes(model, batch, smoothing, precision=precision)
        return _OF_SLOPES[unit](slopes), slopes, loss
    of_parts = {"token": _by_token, "position": _by_position}[unit]
    return of_parts(model, batch, smoothing, precision)


def _by_token(
    model: Transformer, batch: Batch, smoothing: float, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ_t |∂ℓ_t/∂ξ| over all target tokens, [h], and the rest of `_by_unit`."""
    ones = multipliers(model, batch)
    with measured(model, precision):
        losses = token_losses(model, batch, ones, smoothing)
    positions = batch.real % batch.tgt_out.shape[1]
    total, slopes = torch.zeros_like(ones[0]), torch.zeros_like(ones)
    for position in range(batch.tgt_out.shape[1]):
        here = (positions == position).to(losses.dtype)  # to pick them out would wait for a GPU
        (by_token,) = torch.autograd.grad(losses, ones, here, retain_graph=True)
        total += by_token.abs().sum(0)
        slopes += by_token
    return total, slopes, losses.sum()


def _by_position(
    model: Transformer, batch: Batch, smoothing: float, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ_i |c_i · ∂L/∂c_i| over all query positions, [h], and the rest of `_by_unit`."""
    # The input of W_O is c of all heads, [b, q, h · e]. At padded positions the derivative is 0.
    ones, attentions = multipliers(model, batch), list(model.attentions())
    joined = [module.output for _, _, module in attentions]
    with measured(model, precision), watch_inputs(joined) as entering:
        loss = summed_loss(model, batch, ones, smoothing)
    contexts = [entering[output] for output in joined]
    slopes, *inner = torch.autograd.grad(loss, [ones, *contexts])
    total = loss.new_zeros(model.grid.size)
    for (kind, layer, module), context, slope in zip(attentions, contexts, inner, strict=True):
        products = (context.detach() * slope).unflatten(2, (module.heads, module.d_head))
        total[model.grid.span(kind, layer)] = products.sum(3).abs().sum(1).sum(0)
    return total, slopes, loss


def sentence_slopes(
    model: Transformer,
    batch: Batch,
    smoothing: float = 0.0,
    at: float = 1.0,
    precision: str = "fp32",
) -> tuple[Tensor, Tensor]:
    """Return ∂L(x)/∂ξ [b, h] of a batch where every multiplier is `at`, and the summed loss."""
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
    """Return −∫₀¹ E[∂L(x; ξ = α · 1)/∂ξ_h] dα of every head, [heads], in nats per sentence.

    The integral is a sum over the midpoints of `points` equal parts. Source: Sundararajan et al.
    2017, section 3, with multipliers in place of input features.
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
    """Turn dropout off and differentiate only multipliers, with products in a number format."""
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
    """Return multipliers [b, h] of one value, to differentiate the losses of b sentences by."""
    weight = next(model.parameters())
    shape = (len(batch.indices), model.grid.size)
    return torch.full(shape, at, dtype=weight.dtype, device=weight.device, requires_grad=True)
