"""Measures of heads beside importance, all of one model and on the same sentence pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from headcount.base.files import write_result
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.settings.importance import ImportanceSettings, MeasuresSettings
from headcount.data.batches import ParallelText, in_order
from headcount.heads import fisher, head_outputs
from headcount.heads.head_outputs import HeadOutputs
from headcount.heads.importance import DRAW_SEED, facts_of_drawn, read_drawn
from headcount.heads.loss_change import measure_loss_change
from headcount.heads.masked_loss import MaskedLoss
from headcount.heads.measures_files import fisher_file, means_file
from headcount.heads.shapley import random_orders, shapley_by_order
from headcount.heads.slopes import integrated_gradients, sentence_slopes
from headcount.model.machine import batches_of
from headcount.model.removal import set_means
from headcount.model.transformer import Transformer, first_device
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

Done = Callable[[int], object]


@dataclass(frozen=True)
class OnePass:
    """What one pass over a text at ξ = 1 says of every head."""

    fisher: np.ndarray  # F [heads, heads], mean over sentences of g gᵀ
    norms: np.ndarray  # [heads]
    means: np.ndarray  # [heads, e]


def write_measures(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    more: MeasuresSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write every measure on the sentence pairs that importance is measured on.

    `out` is a CSV with the statistics of `RANKED`, fisher_rearranged and shapley_error, the
    standard error of shapley over its orders. `<name>_fisher.csv` has the Fisher information
    within layers, `<name>_means.csv` the mean outputs of heads. Beside each goes a JSON of the
    same name: data, weights, `origin`, and how far the sums of integrated gradients and of Shapley
    values are from what they divide up. Raises UserError if the text has fewer than two sentence
    pairs or the model knows other words.
    """
    folder.check(pair)
    text = read_drawn(pair, settings)
    model = folder.load(settings.device)
    few = text.part(range(min(more.order_sentences, len(text))))
    total = (2 + more.points) * len(text) + more.orders * len(few)
    with (
        batches_of("resources", settings.batch_tokens),
        tqdm(total=total, unit="sentence", disable=None) as bar,
    ):
        seen = one_pass(model, text, settings, bar.update)
        on_path = integrated_gradients(model, text, settings, more.points, bar.update)
        shapley, sums = _shapley(model, few, settings, more, bar.update)
        whole, none = MaskedLoss(model, text, settings).whole_and_none()
        set_means(model, torch.from_numpy(seen.means))
        _, rise = measure_loss_change(model, text, settings, bar.update)
    grid = model.grid
    values = {
        "fisher": np.diagonal(seen.fisher),
        "fisher_rearranged": fisher.stays(seen.fisher, grid),
        "integrated_gradients": on_path,
        "shapley": shapley.mean(0),
        "shapley_error": shapley.std(0, ddof=1) / np.sqrt(len(shapley)),
        "mean_ablation": rise,
        "output_norm": seen.norms,
    }
    path = {"points": more.points, "sum": float(on_path.sum()), "loss_taken_off": none - whole}
    facts = {
        **facts_of_drawn(folder, text, settings),
        "integrated_gradients": path,
        "shapley": sums,
        "provenance": origin,
    }
    write_result(out, COLUMNS, head_rows(grid.heads(), values), facts)
    pairs, means = fisher.fisher_rows(seen.fisher, grid), head_outputs.mean_rows(seen.means, grid)
    write_result(fisher_file(out), fisher.COLUMNS, pairs, facts)
    write_result(means_file(out), head_outputs.COLUMNS, means, facts)


def one_pass(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    done: Done = lambda sentences: None,
) -> OnePass:
    """Fisher information, output norms and mean outputs, from one forward and backward pass.

    `done` is told the number of sentences finished.
    """
    outputs = HeadOutputs(model)
    information = np.zeros((model.grid.size, model.grid.size))
    for batch in in_order(text, settings.batch_tokens, first_device(model)):
        with outputs.of(batch):
            slopes, _ = sentence_slopes(model, batch)
        found = slopes.double().cpu().numpy()
        information += found.T @ found
        done(len(batch.indices))
    return OnePass(information / len(text), outputs.norms(), outputs.means())


def _shapley(
    model: Transformer,
    text: ParallelText,
    settings: ImportanceSettings,
    more: MeasuresSettings,
    done: Done,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Shapley values by order [orders, heads], and what they divide up, for the JSON."""
    loss = MaskedLoss(model, text, settings)
    orders = random_orders(model.grid.size, more.orders, DRAW_SEED)
    found = shapley_by_order(loss, orders, lambda: done(len(text)))
    whole, none = loss.whole_and_none()
    taken = {"sum": float(found.mean(0).sum()), "loss_taken_off": none - whole}
    return found, {"sentences": len(text), "orders": more.orders, **taken}
