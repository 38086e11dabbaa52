"""Pruned models from files to files: a trained model or a random start in, a smaller model out."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headcount.base.addresses import Head, HeadGrid
from headcount.base.files import write_csv
from headcount.base.head_values import write_head_values
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.heads.importance import read_importance
from headcount.model.removal import remove_heads, set_means
from headcount.model.transformer import Transformer, copy_weights, parameter_count
from headcount.store.kept_heads import as_many_heads, gates_heads, tell_heads_left
from headcount.store.model_folder import ModelFolder
from headcount.training.learnt_mask import HeadGates, HeadSubset, LearntMask
from headcount.training.training_run import ModelRun, Row, head_rows

GATE_COLUMNS = ("step", "kind", "layer", "head", "log_alpha", "p_zero", "p_one", "gate")
_ENCODER = ("encoder.", "encoder_norm.", "embedding_norms.0.", "own_src_embedding.")

Start = ModelFolder | ModelSettings  # a trained model to fine-tune, or the shape of a fresh one


class PruningRun(ModelRun):
    """One pruned model.

    Each way to finish writes model/weights.safetensors and model/model.json of the smaller model,
    which load alone, run.json, curves.csv, and heads.csv, the gates of all heads of the model
    before the run. If that model was pruned before, kept_heads in model.json has the addresses in
    the first model of all. A model with gates also writes gates.csv: log α and its probabilities, a
    row per validation and gated head, with the start as step 0.
    """

    def finish_gates(self, start: Start, settings: GatesSettings, out: Path) -> None:
        """Fine-tune a model, or train a fresh one, with gates, and remove heads with a gate of 0.

        A fresh model is trained by the recipe of training. Its weights are drawn as the baseline's
        of the seed, and all of them are trained, whatever the scope: a decoder that is frozen at
        random translates nothing. The last weights become the model.
        """
        trained = isinstance(start, ModelFolder)
        recipe = settings.fine_tuning if trained else settings.from_random_weights
        self._finish(start, recipe, out, learn=partial(HeadGates, settings=settings))

    def finish_subset(
        self, init_from: ModelFolder, lengths: GatesSettings, settings: SubsetSettings, out: Path
    ) -> None:
        """Fine-tune the model in `init_from`, learning which heads stay, and remove the others.

        `lengths`: settings of the gates runs, for the length and rates of fine-tuning.
        """
        learn = partial(HeadSubset, settings=settings)
        self._finish(init_from, lengths.fine_tuning, out, learn=learn)

    def finish_fine_tuned(
        self,
        init_from: ModelFolder,
        heads: Path,
        importance: Path | None,
        settings: GatesSettings,
        out: Path,
    ) -> None:
        """Remove heads from the model in `init_from`, then fine-tune the rest, without gates.

        As many heads stay as in `heads`, the heads.csv of the gates run. A run by importance needs
        `importance`, the importance.csv of the model in `init_from`.
        """

        def kept(grid: HeadGrid) -> np.ndarray:
            ranks = read_importance(importance, init_from, grid) if importance else None
            return as_many_heads(self.run, heads, grid, ranks, self.session.seed)

        self._finish(init_from, settings.fine_tuning, out, kept=kept)

    def finish_scratch(self, model: ModelSettings, heads: Path, out: Path) -> None:
        """Train a fresh model with the heads that are open in `heads`, by the baseline's recipe.

        The whole model is drawn and then loses heads, so that the rest starts as in the baseline of
        the seed.
        """
        recipe = partial(TrainSettings.model_copy, update={"keep_updates": []})
        self._finish(model, recipe, out, kept=partial(gates_heads, heads))

    def _finish(
        self,
        start: Start,
        recipe: Callable[[TrainSettings], TrainSettings],
        out: Path,
        kept: Callable[[HeadGrid], np.ndarray] | None = None,
        learn: Callable[..., LearntMask] | None = None,
    ) -> None:
        """Train without the heads that are not `kept`, or `learn` which heads to remove."""
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            whole, names = self._start(start)
            grid = whole.grid
            gates = kept(grid) if kept else np.ones(grid.size)
            rest = remove_heads(whole, torch.from_numpy(gates)) if kept else whole
            model = self.on_device(rest, states)
            if isinstance(start, ModelFolder):
                freeze_outside(model, self.run)
            settings, seed = recipe(self.train), self.session.seed
            mask = learn(run=self.run, grid=grid, train=settings, seed=seed) if learn else None
            trainer = self.trainer(model, settings, states, mask)
            trainer.fit()
            copy_weights(model, trainer.chosen())
            values = mask.at_end() if mask else {"gate": gates}
            smaller = remove_heads(model, mask.test_time()) if mask else model
            if isinstance(mask, HeadGates):
                rows = head_rows(mask.gated_heads(), [0, *trainer.steps()], mask.statistics())
                write_csv(folder / "gates.csv", GATE_COLUMNS, rows)
            facts = self.write_facts(folder, trainer, smaller)
            save_pruned(folder, smaller, facts, grid, names, values)

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
    """Write the model in a folder without the heads whose multiplier is 0, and heads.csv.

    With `means`, the mean outputs of the model's heads [heads, e], removed heads leave theirs in
    the bias of W_O. heads.csv has the addresses in the model that is read. If that was pruned
    before, kept_heads in model.json has the addresses in the first model of all.
    """
    whole = folder.load()
    if means is not None:
        set_means(whole, torch.from_numpy(means))
    smaller = remove_heads(whole, torch.from_numpy(kept))
    facts = {"parameters": parameter_count(smaller), **folder.subwords(), "provenance": origin}
    names = folder.original_heads(whole.grid)
    save_pruned(out, smaller, facts, whole.grid, names, {"gate": kept})


def save_pruned(
    out: Path,
    smaller: Transformer,
    facts: Row,
    grid: HeadGrid,
    names: list[Head],
    values: dict[str, np.ndarray],
) -> None:
    """Write model/ and heads.csv of a smaller model, and print how many heads are left.

    `grid`: the heads before. `names`: their addresses in the original model. `values`: statistics.
    """
    kept = values["gate"]
    kept_heads = [head.name() for head, gate in zip(names, kept, strict=True) if gate]
    facts = {**facts, "kept_heads": kept_heads, "closed_layers": grid.closed_layers(kept)}
    ModelFolder(out / "model").save(smaller, dict(smaller.named_parameters()), facts)
    write_head_values(out / "heads.csv", grid, values)
    tell_heads_left(grid, kept)


def freeze_outside(model: Transformer, run: PrunedSettings) -> None:
    """Freeze all weights outside the scope: for `enc_self`, all but the encoder.

    The decoder is frozen with its keys and values of the encoder's output. So is the target
    embedding, and the source embedding where both are one.
    """
    if run.scope == "enc_self":
        for name, weight in model.named_parameters():
            weight.requires_grad_(name.startswith(_ENCODER))
