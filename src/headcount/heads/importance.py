"""Importance of attention heads: the derivative of the loss by their multipliers.

Models of another library are measured too, see `headcount_hf/hooks/hooked_folder.py`.

Letters in shapes: b sentences, q query positions, h heads of the model in the flat order of
`HeadGrid`, e width of one head.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.addresses import HeadGrid
from headcount.base.head_values import read_head_values
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.heads.drawn_text import Done, write_measured
from headcount.heads.slopes import measured, multipliers, sentence_slopes
from headcount.model.loss import summed_loss, token_losses
from headcount.model.machine import batches_of
from headcount.model.observed import watch_inputs
from headcount.model.transformer import Transformer, first_device
from headcount.store.model_folder import ModelFolder, check_measured
from headcount.store.pair_folder import PairFolder


def write_importance(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the statistics importance, importance_first_half and importance_second_half.

    The halves of the drawn text share no sentence. Files and errors are described at
    `write_measured`.
    """

    def measure(model: Transformer, text: ParallelText, bar: tqdm) -> tuple[dict, dict]:
        middle = len(text) // 2  # an odd pair is in the second half
        halves = text.part(range(middle)), text.part(range(middle, len(text)))
        first, second = (measure_importance(model, h, settings, bar.update) for h in halves)
        sizes = [len(half) for half in halves]
        whole = np.average([first, second], axis=0, weights=sizes)
        statistics = {"importance": whole}
        statistics |= {"importance_first_half": first, "importance_second_half": second}
        return statistics, {"halves": sizes}

    write_measured(measure, folder, pair, settings, out, origin)


def read_importance(path: Path, folder: ModelFolder, grid: HeadGrid) -> np.ndarray:
    """Return the importance of every head of the model in a folder, [heads] in flat order.

    Raises UserError if the file has other heads, or if the JSON beside it names other weights. A
    file without JSON was made by hand and is accepted for any model with these heads.
    """
    values = read_head_values(path, "importance", grid)
    check_measured(
        path, folder.weight_files, "the importance of the heads", "scripts/importance.py"
    )
    return values


class BatchImportance(NamedTuple):
    """Importance of every head for one batch, and the slopes and loss behind it."""

    importance: Tensor  # [h], mean over sentences; larger means more important
    slopes: Tensor  # [b, h], ∂L(x)/∂ξ of each sentence; above 0, the head raises the loss
    loss: Tensor  # of the batch, a scalar in nats, summed over target tokens


def batch_importance(
    model: Transformer,
    batch: Batch,
    unit: str = "sentence",
    precision: str = "fp32",
    smoothing: float = 0.0,
) -> BatchImportance:
    """Return the importance of every head for one batch, nats per sentence.

    `unit` is `settings.abs` of `measure_importance`, `precision` is fp32 or bf16, `smoothing` is
    the label smoothing ε of the loss. Dropout is off. Mode, weights and gradients of the model and
    the random state stay as they were.

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

    It is the mean over sentences of a quantity that `settings.abs` names:

    - `sentence`: |∂L(x)/∂ξ|, where L(x) is the loss of sentence x.
    - `token`: Σ_t |∂ℓ_t/∂ξ| over the losses ℓ_t of its target tokens. This takes as many backward
      passes for each batch as its longest target has tokens.
    - `position`: Σ_i |c_i · ∂L(x)/∂c_i| over the query positions i of the head's own layer, where
      c_i is the head's output there. The code of Michel et al. 2019 computes this.
    - `batch`: |Σ_x ∂L(x)/∂ξ| of a batch, summed over batches and divided by the number of
      sentences. Only this one depends on `batch_tokens`.
    - `square`: (∂L(x)/∂ξ)², the diagonal of the Fisher information of the multipliers, nats².
    - `none`: −∂L(x)/∂ξ, below 0 for a head without which the loss would fall.

    Larger means more important. L(x) has no label smoothing. `done` is called with the number of
    sentences just finished. Raises UserError if the text is empty.

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
    """Return importance [h] divided by the L2 norm of its layer and kind; zeros stay zeros.

    Source: Michel et al. 2019.
    """
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
    if unit in _OF_SLOPES:
        slopes, loss = sentence_slopes(model, batch, smoothing, precision=precision)
        return _OF_SLOPES[unit](slopes), slopes, loss
    of_parts = {"token": _by_token, "position": _by_position}[unit]
    return of_parts(model, batch, smoothing, precision)


def _by_token(
    model: Transformer, batch: Batch, smoothing: float, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ_t |∂ℓ_t/∂ξ| over all target tokens, [h], and the rest of `_by_unit`.

    One backward pass per target position serves all sentences at once: row b of the derivative
    of Σ_b ℓ_(b,t) holds the token of sentence b alone.
    """
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
    """Return Σ_i |c_i · ∂L/∂c_i| over all query positions, [h], and the rest of `_by_unit`.

    The input of each W_O is c of all heads, [b, q, h · e]. At padded positions the derivative is 0,
    since no real position attends to them.
    """
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
