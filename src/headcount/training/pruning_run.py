"""Pruned models from files to files: a trained model or a random start in, a smaller model out."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from headcount.base.addresses import Head, HeadGrid
from headcount.base.head_values import write_head_values
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.heads.importance import read_importance
from headcount.model.removal import remove_heads, set_means
from headcount.model.transformer import Transformer, copy_weights, parameter_count
from headcount.store.kept_heads import as_many_heads, gates_heads, tell_heads_left
from headcount.store.model_folder import ModelFolder
from headcount.training.gates import HeadGates
from headcount.training.learnt_mask import LearntMask
from headcount.training.states import StateStore
from headcount.training.subset import HeadSubset
from headcount.training.train import Trainer
from headcount.training.training_run import (
    ModelRun,
    Row,
    write_rows,
)

GATE_COLUMNS = ("step", "kind", "layer", "head", "log_alpha", "p_zero", "p_one", "gate")
_ENCODER = ("encoder.", "encoder_norm.", "embedding_norms.0.", "own_src_embedding.")


class PruningRun(ModelRun):
    """One pruned model.

    Each way to finish writes model/weights.safetensors and model/model.json of the smaller model,
    which load alone, run.json, curves.csv, and heads.csv, the gates of all heads of the model
    before the run. Where that model was pruned before, kept_heads in
    model.json still has the addresses in the first model of all.
    """

    def finish_gates(self, init_from: ModelFolder, settings: GatesSettings, out: Path) -> None:
        """Fine-tune the model in `init_from` with gates, and remove the heads whose gates are 0.

        Also writes gates.csv: log α and what follows from it, a row per validation and gated head,
        with the start as step 0. heads.csv has log_alpha, p_zero and p_one of gated heads, too.
        """
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            model = self._load(init_from, states)
            freeze_outside(model, self.run)
            names = init_from.original_heads(model.grid)
            recipe = settings.fine_tuning(self.train)
            self._learn_gates(model, names, settings, recipe, states, folder)

    def finish_gates_from_none(
        self, model: ModelSettings, settings: GatesSettings, out: Path
    ) -> None:
        """Train a fresh model with gates, by the recipe of training, and remove as `finish_gates`.

        Also writes gates.csv. The weights are drawn as the baseline's of the seed, and all of them
        are trained, whatever the scope: a decoder that is frozen at random translates nothing. The
        last weights become the model.
        """
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            whole = self.on_device(self.fresh_model(model), states)
            recipe = settings.from_random_weights(self.train)
            self._learn_gates(whole, whole.grid.heads(), settings, recipe, states, folder)

    def _learn_gates(
        self,
        model: Transformer,
        names: list[Head],
        settings: GatesSettings,
        recipe: TrainSettings,
        states: StateStore,
        folder: Path,
    ) -> None:
        """Train the model with gates, and write it without the heads that close to a folder.

        `names`: the addresses of its heads in the first model of all.
        """
        gates = HeadGates(self.run, model.grid, settings, recipe, self.session.seed)
        trainer = self.trainer(model, recipe, states, gates)
        trainer.fit()
        write_rows(folder / "gates.csv", GATE_COLUMNS, gate_rows(gates, trainer))
        self._write_learnt(model, names, trainer, gates, folder)

    def finish_subset(
        self, init_from: ModelFolder, lengths: GatesSettings, settings: SubsetSettings, out: Path
    ) -> None:
        """Fine-tune the model in `init_from`, learning which heads stay; remove the others.

        `lengths`: those of fine-tuning, as of the gates runs. heads.csv has w of the scope's heads.
        """
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            model = self._load(init_from, states)
            freeze_outside(model, self.run)
            recipe = lengths.fine_tuning(self.train)
            subset = HeadSubset(self.run, model.grid, settings, recipe, self.session.seed)
            trainer = self.trainer(model, recipe, states, subset)
            trainer.fit()
            names = init_from.original_heads(model.grid)
            self._write_learnt(model, names, trainer, subset, folder)

    def _write_learnt(
        self,
        model: Transformer,
        names: list[Head],
        trainer: Trainer,
        mask: LearntMask,
        folder: Path,
    ) -> None:
        """Write the trained model without the heads that a learnt mask closes to a folder."""
        copy_weights(model, trainer.chosen())
        smaller = remove_heads(model, mask.test_time())
        facts = self.write_facts(folder, trainer, smaller)
        save_pruned(folder, smaller, facts, model.grid, names, mask.at_end())

    def finish_fine_tuned(
        self,
        init_from: ModelFolder,
        heads: Path,
        importance: Path | None,
        settings: GatesSettings,
        out: Path,
    ) -> None:
        """Remove heads from the model in `init_from`, then fine-tune what is left, without gates.

        As many heads stay as in `heads`, the heads.csv of the gates run; `importance` is the
        importance.csv of the model in `init_from`, which a run by importance needs.
        """
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            whole = self._load(init_from, states)
            names = init_from.original_heads(whole.grid)
            ranks = read_importance(importance, init_from, whole.grid) if importance else None
            kept = as_many_heads(self.run, heads, whole.grid, ranks, self.session.seed)
            model = remove_heads(whole, torch.from_numpy(kept))
            freeze_outside(model, self.run)
            trainer = self.trainer(model, settings.fine_tuning(self.train), states)
            trainer.fit()
            copy_weights(model, trainer.chosen())
            facts = self.write_facts(folder, trainer, model)
            save_pruned(folder, model, facts, whole.grid, names, {"gate": kept})

    def finish_scratch(self, model: ModelSettings, heads: Path, out: Path) -> None:
        """Train a fresh model with the heads that are open in `heads`, by the baseline's recipe.

        The whole model is drawn and then loses heads, so that what is left starts as in the
        baseline of the seed.
        """
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            whole = self.fresh_model(model)
            kept = gates_heads(heads, whole.grid)
            smaller = self.on_device(remove_heads(whole, torch.from_numpy(kept)), states)
            recipe = self.train.model_copy(update={"keep_updates": []})
            trainer = self.trainer(smaller, recipe, states)
            trainer.fit()
            copy_weights(smaller, trainer.chosen())
            facts = self.write_facts(folder, trainer, smaller)
            save_pruned(folder, smaller, facts, whole.grid, whole.grid.heads(), {"gate": kept})

    def _load(self, folder: ModelFolder, states: StateStore) -> Transformer:
        """The model to start from, where it is to be trained."""
        model = folder.load()
        folder.check(self.pair)
        return self.on_device(model, states)


def write_removed(
    folder: ModelFolder,
    kept: np.ndarray,
    means: np.ndarray | None,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the model in a folder without the heads whose multiplier is 0, and heads.csv.

    With `means`, the mean outputs of the model's heads [heads, e], those that go leave theirs in
    the bias of W_O. heads.csv has the addresses of the model that is read; kept_heads in model.json
    those of the model that was pruned first, where this is not the first time.
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
    """Write model/ and heads.csv of a smaller model, and tell how many heads are left.

    `grid`: the heads before; `names`: their addresses in the original model; `values`: their
    statistics, of which `gate` says who stays.
    """
    kept = values["gate"]
    kept_heads = [head.name() for head, gate in zip(names, kept, strict=True) if gate]
    facts = {**facts, "kept_heads": kept_heads, "closed_layers": grid.closed_layers(kept)}
    ModelFolder(out / "model").save(smaller, dict(smaller.named_parameters()), facts)
    write_head_values(out / "heads.csv", grid, values)
    tell_heads_left(grid, kept)


def freeze_outside(model: Transformer, run: PrunedSettings) -> None:
    """Freeze what the scope leaves alone: for `enc_self`, all but the encoder.

    The decoder with its keys and values of the encoder's output is frozen, and so is the target
    embedding, thus the source's as well where both are one.
    """
    if run.scope == "enc_self":
        for name, weight in model.named_parameters():
            weight.requires_grad_(name.startswith(_ENCODER))


def gate_rows(gates: HeadGates, trainer: Trainer) -> list[Row]:
    """The gates at step 0 and at every validation, a row per gated head."""
    steps = [0, *(row["step"] for row in trainer.progress.curve)]
    heads = gates.grid.heads()
    rows = []
    for step, log_alpha in zip(steps, gates.history, strict=True):
        columns = [values.tolist() for values in gates.read_off(log_alpha.numpy()).values()]
        for position, *numbers in zip(gates.gated, *columns, strict=True):
            cells = (step, *heads[position], *numbers)
            rows.append(dict(zip(GATE_COLUMNS, cells, strict=True)))
    return rows
