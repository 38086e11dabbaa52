"""Measures of heads beside importance, all of one model and on the same sentence pairs.

To add one, add a function of `Passes` to `MEASURES`, and describe the measure in
`analysis/measures.yaml`. The file gets a statistic of this name, and heads are pruned by it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.files import write_result
from headcount.base.settings.heads import ImportanceSettings, MeasuresSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.data.vocabulary import PAD
from headcount.heads import measures_files as files
from headcount.heads.drawn_text import DRAW_SEED, Done, write_measured
from headcount.heads.importance import integrated_gradients, sentence_slopes
from headcount.heads.loss_change import (
    MaskedLoss,
    measure_loss_change,
    random_orders,
    shapley_by_order,
)
from headcount.heads.measures_files import stays
from headcount.model.removal import set_means
from headcount.model.transformer import Transformer, first_device, watch_inputs
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


class HeadOutputs:
    """Sums of all heads' outputs over real query positions, added up batch by batch."""

    def __init__(self, model: Transformer):
        self._grid, width = model.grid, model.settings.head_width
        self._sizes, self._positions = np.zeros(model.grid.size), np.zeros(model.grid.size)
        self._outputs = np.zeros((model.grid.size, width))
        self._layers = [
            (kind, layer, module, _factors(module.output.weight, width))
            for kind, layer, module in model.attentions()
            if module.heads
        ]

    @contextmanager
    def of(self, batch: Batch) -> Iterator[None]:
        """Return a context in which the model runs once on a batch, every multiplier 1."""
        with watch_inputs(module.output for _, _, module, _ in self._layers) as entering:
            yield
        with torch.no_grad():
            for kind, layer, module, factors in self._layers:
                queries = (batch.src if kind == "enc_self" else batch.tgt_in) != PAD
                self._add(self._grid.span(kind, layer), entering[module.output][queries], factors)

    def norms(self) -> np.ndarray:
        """Return means of ‖W_O^h c_h‖, [heads]: Kobayashi et al. 2020, section 3."""
        return self._sizes / self._positions

    def means(self) -> np.ndarray:
        """Return the mean output of every head over positions, before W_O: [heads, e]."""
        return self._outputs / self._positions[:, None]

    def _add(self, span: slice, contexts: Tensor, factors: Tensor) -> None:
        """Add the contexts [positions, h · e] of one layer."""
        by_head = contexts.unflatten(1, (len(factors), -1)).double()
        sizes = torch.einsum("phe,hfe->phf", by_head, factors).norm(dim=2)
        self._sizes[span] += sizes.sum(0).cpu().numpy()
        self._outputs[span] += by_head.sum(0).cpu().numpy()
        self._positions[span] += len(by_head)


@dataclass(frozen=True)
class Passes:
    """A model, the drawn text, settings, and passes that several measures share."""

    model: Transformer
    text: ParallelText
    settings: ImportanceSettings
    more: MeasuresSettings
    done: Done = lambda sentences: None

    def batches(self, text: ParallelText) -> Iterator[Batch]:
        """Return the batches of a text."""
        return in_order(text, self.settings.batch_tokens, first_device(self.model))

    @cached_property
    def first(self) -> tuple[np.ndarray, HeadOutputs]:
        """Fisher information [heads, heads], mean of g gᵀ over sentences, and outputs of heads."""
        outputs = HeadOutputs(self.model)
        total = np.zeros((self.model.grid.size, self.model.grid.size))
        for batch in self.batches(self.text):
            with outputs.of(batch):
                batch_slopes, _ = sentence_slopes(self.model, batch)
            slopes = batch_slopes.double().cpu().numpy()
            total += slopes.T @ slopes
            self.done(len(batch.indices))
        return total / len(self.text), outputs

    @property
    def few(self) -> ParallelText:
        """The first pairs, on which Shapley values are measured."""
        return self.text.part(range(min(self.more.order_sentences, len(self.text))))

    @cached_property
    def by_order(self) -> np.ndarray:
        """Shapley values by order, [orders, heads]."""
        orders = random_orders(self.model.grid.size, self.more.orders, DRAW_SEED)
        loss = MaskedLoss(self.model, self.batches(self.few))
        return shapley_by_order(loss, orders, lambda: self.done(len(self.few)))

    def mean_ablation(self) -> np.ndarray:
        """Return the rise of the loss with each head's mean output in its place, [heads]."""
        set_means(self.model, torch.from_numpy(self.first[1].means()))
        _, rise = measure_loss_change(self.model, self.text, self.settings, self.done)
        set_means(self.model, None)
        return rise

    def sums(self, text: ParallelText, values: np.ndarray) -> dict[str, float]:
        """Return the sum of values [heads], and the loss that they divide up."""
        whole, none = MaskedLoss(self.model, self.batches(text)).whole_and_none()
        return {"sum": float(values.sum()), "loss_taken_off": none - whole}


MEASURES: dict[str, Callable[[Passes], np.ndarray]] = {
    "fisher": lambda p: np.diagonal(p.first[0]),
    "fisher_rearranged": lambda p: stays(p.first[0], p.model.grid),
    "integrated_gradients": lambda p: integrated_gradients(
        p.model, p.text, p.settings, p.more.points, p.done
    ),
    "shapley": lambda p: p.by_order.mean(0),
    "shapley_error": lambda p: p.by_order.std(0, ddof=1) / np.sqrt(len(p.by_order)),
    "mean_ablation": Passes.mean_ablation,
    "output_norm": lambda p: p.first[1].norms(),
}
"""The statistics of `measures.csv` in the order of the file. Each function returns [heads]."""


def write_measures(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    more: MeasuresSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write `MEASURES` by `write_measured`, and Fisher information and mean outputs beside them."""
    beside = {}

    def measure(
        model: Transformer, text: ParallelText, settings: ImportanceSettings, bar: tqdm
    ) -> tuple[dict, dict]:
        passes = Passes(model, text, settings, more, bar.update)
        bar.reset((2 + more.points) * len(text) + more.orders * len(passes.few))
        values = {name: function(passes) for name, function in MEASURES.items()}
        fisher, outputs = passes.first
        beside["fisher"] = files.fisher_rows(fisher, model.grid)
        beside["means"] = files.mean_rows(outputs.means(), model.grid)
        path = passes.sums(text, values["integrated_gradients"])
        orders = passes.sums(passes.few, values["shapley"])
        orders |= {"sentences": len(passes.few), "orders": more.orders}
        return values, {"integrated_gradients": path | {"points": more.points}, "shapley": orders}

    facts = write_measured(measure, folder, pair, settings, out, origin)
    for part, rows in beside.items():
        write_result(files.beside(out, part), files.COLUMNS[part], rows, facts)


def _factors(weight: Tensor, width: int) -> Tensor:
    """Return R of W_O^h = QR for every head, [h, ·, e]: ‖R c‖ is ‖W_O^h c‖ with fewer products."""
    by_head = weight.detach().double().unflatten(1, (-1, width)).permute(1, 0, 2)
    return torch.linalg.qr(by_head, mode="r").R
