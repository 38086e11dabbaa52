"""Pruned models from files to files: a trained model or a random start in, a smaller model out."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.base.addresses import Head, HeadGrid
from headcount.base.files import write_csv
from headcount.base.head_values import write_head_values
from headcount.base.multiply_adds import Lengths, unit_costs
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.heads.importance import read_importance
from headcount.model.removal import remove_units, set_means
from headcount.model.transformer import Transformer, copy_weights, parameter_count
from headcount.model.units import UnitTransformer, with_grid
from headcount.store.kept_heads import as_many_heads, gates_heads, tell_heads_left
from headcount.store.model_folder import ModelFolder
from headcount.training.learnt_mask import HeadGates, HeadSubset
from headcount.training.training_run import ModelRun, Row, head_rows

GATE_COLUMNS = ("step", "kind", "layer", "head", "log_alpha", "p_zero", "p_one", "gate")
_ENCODER = ("encoder.", "encoder_norm.", "embedding_norms.0.", "own_src_embedding.")

_GATES, _SUBSET = GatesSettings(), SubsetSettings()
Start = ModelFolder | ModelSettings  # a trained model to fine-tune, or the shape of a fresh one


class PruningRun(ModelRun):
    """One pruned model.

    Its files are model/weights.safetensors and model/model.json of the smaller model, which load
    alone, run.json, curves.csv, and heads.csv, the gates of all heads of the model before the run.
    If that model was pruned before, kept_heads in model.json has the addresses in the first model
    of all. Gates also write gates.csv: log α and its probabilities, a row per validation and gated
    head, with the start as step 0.
    """

    def finish(
        self,
        start: Start,
        out: Path,
        heads: Path | None = None,
        importance: Path | None = None,
        gates: GatesSettings = _GATES,
        subset: SubsetSettings = _SUBSET,
    ) -> None:
        """Prune or train by the method of the run, and write `out`.

        `gates` and `subset` fine-tune and learn which heads to remove; the last weights become the
        model. `importance` and `random` keep as many heads as `heads`, the heads.csv of the gates
        run, and fine-tune; `importance` is the importance.csv of the model in `start`. `scratch`
        trains the open heads of `heads` by the baseline's recipe.

        A fresh model is drawn whole, as the baseline of the seed, before it loses heads. All of its
        weights are trained, whatever the scope: a decoder frozen at random translates nothing.
        """
        with self.unfinished(out) as (states, folder):
            if not states:
                return
            (whole, names), method = self._start(start), self.run.method
            if not self.run.of_heads:
                whole = UnitTransformer.of(whole)
            grid, learns = whole.grid, method in ("gates", "subset")
            kept = np.ones(grid.size) if learns else self._kept(start, heads, importance, grid)
            model = whole if learns else remove_units(whole, torch.from_numpy(kept))
            model = self.on_device(model, states)
            if isinstance(start, ModelFolder):
                freeze_outside(model, self.run)
            settings, mask = self._recipe(start, gates), None
            if learns:
                kind, own = (HeadGates, gates) if method == "gates" else (HeadSubset, subset)
                mask = kind(self.run, grid, own, settings, self.seed)
                if self.run.price == "flops":
                    mask.prices = self._prices(model.settings, mask.gated)
            trainer = self.trainer(model, settings, states, mask)
            trainer.fit()
            copy_weights(model, trainer.chosen())
            values = mask.at_end() if mask else {"gate": kept}
            smaller = remove_units(model, mask.test_time()) if mask else model
            if isinstance(mask, HeadGates):
                gated = [grid.heads()[position] for position in mask.gated]
                rows = head_rows(gated, [0, *trainer.steps()], mask.statistics())
                write_csv(folder / "gates.csv", GATE_COLUMNS, rows)
            facts = self.write_facts(folder, trainer, smaller)
            save_pruned(folder, smaller, facts, grid, names, values)

    def _prices(self, model: ModelSettings, gated: list[int]) -> Tensor:
        """Return the multiply-adds of units [gated units] as multiples of the mean head's."""
        lengths = Lengths(*self.pair.read("train").lengths.mean(1))
        costs = unit_costs(model.unit_grid, model, lengths)
        return torch.from_numpy(costs[gated] / costs[: model.grid.size].mean())

    def _recipe(self, start: Start, gates: GatesSettings) -> TrainSettings:
        if self.run.method == "scratch":
            return self.train.model_copy(update={"keep_updates": []})
        trained = isinstance(start, ModelFolder)
        return (gates.fine_tuning if trained else gates.from_random_weights)(self.train)

    def _kept(
        self, start: Start, heads: Path, importance: Path | None, grid: HeadGrid
    ) -> np.ndarray:
        """Return the multiplier [heads] of the heads that stay, chosen before training."""
        if self.run.method == "scratch":
            return gates_heads(heads, grid)
        ranks = read_importance(importance, start, grid) if importance else None
        return as_many_heads(self.run, heads, grid, ranks, self.seed)

    def _start(self, start: Start) -> tuple[Transformer, list[Head]]:
        """Return the model to start from, and the addresses of its heads in the first model."""
        if isinstance(start, ModelSettings):
            model = self.fresh_model(start)
            return model, model.grid.heads()
        model = start.load()
        start.check(self.pair)
        return model, start.original_heads(model.grid)


def write_removed(
    folder: ModelFolder,
    kept: np.ndarray,
    means: np.ndarray | None,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the model in a folder without the units whose multiplier is 0, and heads.csv.

    `kept`: [heads], or [units] of all kinds. With `means`, the mean outputs of the model's heads
    [heads, e], removed heads leave theirs in the bias of W_O.
    """
    whole = folder.load()
    if means is not None:
        set_means(whole, torch.from_numpy(means))
    grid = whole.grid if len(kept) == whole.grid.size else whole.settings.unit_grid
    smaller = remove_units(with_grid(whole, grid), torch.from_numpy(kept))
    facts = {"parameters": parameter_count(smaller), **folder.subwords(), "provenance": origin}
    names = folder.original_heads(whole.grid)
    save_pruned(out, smaller, facts, grid, names, {"gate": kept})


def save_pruned(
    out: Path,
    smaller: Transformer,
    facts: Row,
    grid: HeadGrid,
    names: list[Head],
    values: dict[str, np.ndarray],
) -> None:
    """Write model/ and heads.csv of a smaller model, and print how many units are left."""
    kept = values["gate"]
    kept_heads = [names[place].name() for place in grid.heads_left(kept)]
    facts = {**facts, "kept_heads": kept_heads, "closed_layers": grid.closed_layers(kept)}
    ModelFolder(out / "model").save(smaller, dict(smaller.named_parameters()), facts)
    write_head_values(out / "heads.csv", grid, values)
    tell_heads_left(grid, kept)


def freeze_outside(model: Transformer, run: PrunedSettings) -> None:
    """Freeze all weights outside the scope: for `enc_self`, the decoder and embeddings it reads."""
    if run.scope == "enc_self":
        for name, weight in model.named_parameters():
            weight.requires_grad_(name.startswith(_ENCODER))
