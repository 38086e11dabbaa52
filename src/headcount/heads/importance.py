"""Importance of attention heads: the derivative of the loss with respect to their multipliers.

A model that stays in another library, its folder and its text may stand in the place of ours: see
`hooked_seq2seq.py` and `hooked_folder.py` in `headcount_hf/hooks`.

Letters in shapes: b sentences, q query positions, h heads of the model in the flat order of
`HeadGrid`, e width of one head.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import sha256, write_result
from headcount.base.head_values import COLUMNS, head_rows, read_head_values
from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.heads.slopes import measured, multipliers, sentence_slopes
from headcount.model.loss import summed_loss, token_losses
from headcount.model.machine import batches_of
from headcount.model.observed import watch_inputs
from headcount.model.transformer import Transformer, first_device
from headcount.store.model_folder import ModelFolder, check_measured
from headcount.store.pair_folder import PairFolder

DRAW_SEED = 1  # not the run's, so that all runs are measured on the same sentence pairs


def write_importance(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the importance of every head, over a drawn subset of the text and over its two halves.

    `out` is a CSV with the statistics importance, importance_first_half and
    importance_second_half; the halves share no sentence. Beside it goes a JSON of the same name:
    which data, how many sentences, the SHA-256 of the weights, and `origin`. Raises UserError if
    the text has fewer than two sentence pairs or the model knows other words.
    """
    folder.check(pair)
    text = read_drawn(pair, settings)
    middle = len(text) // 2  # an odd pair is in the second half
    halves = text.part(range(middle)), text.part(range(middle, len(text)))
    model = folder.load(settings.device)
    with tqdm(total=len(text), unit="sentence", disable=None) as bar:
        parts = [measure_importance(model, h, settings, bar.update) for h in halves]
    sizes = [len(half) for half in halves]
    whole = np.average(parts, axis=0, weights=sizes)
    names = ("importance", "importance_first_half", "importance_second_half")
    values = dict(zip(names, (whole, *parts), strict=True))
    facts = {"halves": sizes, **facts_of_drawn(folder, text, settings), "provenance": origin}
    write_result(out, COLUMNS, head_rows(model.grid.heads(), values), facts)


def facts_of_drawn(
    folder: ModelFolder, text: ParallelText, settings: ImportanceSettings
) -> dict[str, Any]:
    """Return what heads were measured on: which data, how many sentences, which weights."""
    return {
        "data": settings.data,
        "sentences": len(text),
        "weights": sha256(*folder.weight_files),
    }


def read_importance(path: Path, folder: ModelFolder, grid: HeadGrid) -> np.ndarray:
    """Importance of every head of the model in a folder, [heads] in flat order.

    Raises UserError if the file is another model's: one with other heads, or, by what
    `write_importance` leaves beside it, with other weights. A file that has nothing beside it was
    made by hand, and is for any model with these heads.
    """
    values = read_head_values(path, "importance", grid)
    check_measured(
        path, folder.weight_files, "the importance of the heads", "scripts/importance.py"
    )
    return values


def read_drawn(pair: PairFolder, settings: ImportanceSettings) -> ParallelText:
    """The sentence pairs on which importance is measured, drawn without repetition.

    A text with fewer pairs than asked for is taken whole. Raises UserError if it has fewer than
    two.
    """
    text = pair.read(settings.data)
    if len(text) < 2:
        raise UserError(
            f"{pair.texts(settings.data)[0]}: expected at least 2 sentence pairs to measure "
            f"importance on, found {len(text)}; choose other importance.data or look at the text "
            "step's counts"
        )
    order = np.random.default_rng(DRAW_SEED).permutation(len(text))
    return text.part(order[: settings.sentences].tolist())


class BatchImportance(NamedTuple):
    """What one batch says of every head."""

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
    """Importance of every head for one batch, and what it is made of.

    Importance: mean over sentences of |∂L(x)/∂ξ| at ξ = 1, L(x) summed over the sentence's target
    tokens; nats per sentence. `unit`: what the absolute value is taken of, as `measure_importance`
    has it; with `none`, heads that lower the loss are above 0. Dropout is off. The model is left as
    it was: mode, weights, their gradients, and the random state too. `precision`: fp32 or bf16;
    `smoothing`: label smoothing ε of the loss.

    Source: Sun et al. 2020, equation 1, on a single batch (their algorithm 2, steps 1 and 2).
    """
    found, slopes, loss = _by_unit(model, batch, unit, smoothing, precision)
    return BatchImportance(found / len(batch.indices), slopes, loss.detach())


def measure_importance(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    done: Callable[[int], object] = lambda sentences: None,
) -> np.ndarray:
    """Importance of every head over a text, [h]; nats per sentence.

    The mean over sentences of what `settings.abs` names:

    - `sentence`: |∂L(x)/∂ξ|, L(x) the loss of sentence x.
    - `token`: Σ_t |∂ℓ_t/∂ξ| over its target tokens' losses ℓ_t. Exact, and so with as many
      backward passes per batch as its longest target has tokens.
    - `position`: Σ_i |c_i · ∂L(x)/∂c_i| over the query positions i of the head's own layer, c_i
      being the head's output there; what the code of Michel et al. 2019 computes.
    - `batch`: |Σ_x ∂L(x)/∂ξ| of each batch, summed over the batches and divided by the number of
      sentences like the others; the only one that depends on `batch_tokens`.
    - `square`: (∂L(x)/∂ξ)², the diagonal of the Fisher information of the multipliers; nats².
    - `none`: −∂L(x)/∂ξ, below 0 for a head without which the loss would fall.

    Larger means more important. L(x) has no label smoothing. `done` is told the number of sentences
    finished. Raises UserError if the text is empty.

    Source: Sun et al. 2020, equations 1 and 2; Michel et al. 2019 have the same. Squares: Kwon et
    al. 2022, section 4.1.
    """
    total = np.zeros(model.grid.size)
    with batches_of("resources", settings.batch_tokens):
        for batch in in_order(text, settings.batch_tokens, first_device(model)):
            found, _, _ = _by_unit(model, batch, settings.abs)
            total += found.double().cpu().numpy()
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


def _by_unit(
    model: Transformer,
    batch: Batch,
    unit: str,
    smoothing: float = 0.0,
    precision: str = "fp32",
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what a unit names, summed over sentences [h]; slopes by sentence [b, h]; the loss."""
    if unit in ("token", "position"):
        of_parts = _by_token if unit == "token" else _by_position
        return of_parts(model, batch, smoothing, precision)
    slopes, loss = sentence_slopes(model, batch, smoothing, precision=precision)
    if unit in ("sentence", "square"):
        return (slopes.abs() if unit == "sentence" else slopes.square()).sum(0), slopes, loss
    return (slopes.sum(0).abs() if unit == "batch" else -slopes.sum(0)), slopes, loss


def _by_token(
    model: Transformer, batch: Batch, smoothing: float, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ_t |∂ℓ_t/∂ξ| over all target tokens, [h]; as `_by_unit`.

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
        (found,) = torch.autograd.grad(losses, ones, here, retain_graph=True)
        total += found.abs().sum(0)
        slopes += found
    return total, slopes, losses.sum()


def _by_position(
    model: Transformer, batch: Batch, smoothing: float, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ_i |c_i · ∂L/∂c_i| over all query positions, [h]; as `_by_unit`.

    What enters each W_O is c of all heads, [b, q, h · e]. At padded positions the derivative is 0:
    nothing that counts attends to them.
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
        by_head = products.sum(3).abs().sum(1)  # [b, q, h, e] to [b, h]
        total[model.grid.span(kind, layer)] = by_head.sum(0)
    return total, slopes, loss
