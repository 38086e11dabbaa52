"""A training run from files to files: text in, model and curve out."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headcount.base import command
from headcount.base.addresses import HeadGrid
from headcount.base.files import remove_folder, write_csv
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import Run, write_run
from headcount.base.settings.train import TrainSettings
from headcount.model.machine import pick_device, pick_format, warn_of_slow_format
from headcount.model.transformer import Transformer, parameter_count
from headcount.store.model_folder import ModelFolder, save_weights
from headcount.store.pair_folder import PairFolder
from headcount.training.headmask import HeadMask, make_head_mask
from headcount.training.processes import agree, is_first, together
from headcount.training.progress import CURVE_COLUMNS, Progress
from headcount.training.states import StateStore
from headcount.training.train import Trainer

MASK_COLUMNS = ("step", "kind", "layer", "head", "masked")
SLOPE_COLUMNS = (*MASK_COLUMNS[:-1], "slope_mean", "slope_sd", "importance")
Row = dict[str, Any]


@dataclass(frozen=True)
class Session:
    """What a run needs beside model and text to be taken up again where it was stopped."""

    seed: int
    origin: dict[str, Any]  # the run's provenance
    state: Path  # folder of the states of the unfinished run
    save_seconds: float  # between two saved states

    @contextmanager
    def unfinished(
        self, settings: TrainSettings, out: Path
    ) -> Iterator[tuple[StateStore, Path] | tuple[None, None]]:
        """Context that puts the run's outputs in `out` when it ends.

        Gives the states to go on from, and a folder to write everything to; None for both if the
        outputs lie finished. They do beside the states while an engine waits to record them
        (workflow/engines/records.py), so that a run which ends before that is not trained again. Of
        several processes the first one alone writes; the others leave in `Trainer.fit`.
        """
        identity = {part: self.origin[part] for part in command.IDENTITY}
        identity["device"] = pick_device(settings.device).type
        states = StateStore(self.state, identity, self.save_seconds)
        with together(settings.processes, gpus=identity["device"] == "cuda"):
            if not is_first():
                yield (None, None) if agree(False) else (states, out)
                return
            with states.held():
                yield from self._committed(states, out)

    def _committed(
        self, states: StateStore, out: Path
    ) -> Iterator[tuple[StateStore, Path] | tuple[None, None]]:
        """What `unfinished` does in the first process, which holds the states."""
        finished = states.finished
        if agree(finished.is_whole()):
            print(f"trained before; outputs taken from {finished.folder}", file=sys.stderr)
            yield None, None
        else:
            if finished.folder.exists():
                print(f"{finished.folder}: damaged, so not taken for the outputs", file=sys.stderr)
            with finished.written(out) as folder:
                yield states, folder
        states.drop()
        finished.place(out)
        if not command.has_engine():
            remove_folder(states.folder)  # beside it may lie other runs' states, and other files


@dataclass
class ModelRun:
    """A run that makes a model, from the text of a pair to files."""

    run: Run
    pair: PairFolder
    train: TrainSettings  # the baseline's, of a pruned run as well
    session: Session

    def fresh_model(self, settings: ModelSettings) -> Transformer:
        """An untrained model for the text, on the CPU; its weights are drawn by the seed."""
        sizes = map(len, self.pair.vocabularies())
        joint = self.pair.segmentation()["joint"]
        torch.manual_seed(self.session.seed)
        return Transformer(settings, *sizes, joint)

    def on_device(self, model: Transformer, states: StateStore) -> Transformer:
        """The model where the settings say that it is trained; warns of a format slow there.

        From here on `precision` is fp32 or bf16, also where the settings leave it to `auto`.
        """
        device = pick_device(self.train.device)
        if self.train.precision == "auto":
            taken = _taken_format(states, device, model.settings.d_model)
            self.train = self.train.model_copy(update={"precision": taken})
        warn_of_slow_format(self.train.precision, device)
        return model.to(device)

    def trainer(
        self,
        model: Transformer,
        settings: TrainSettings,
        states: StateStore,
        head_mask: HeadMask | None = None,
    ) -> Trainer:
        """What trains the model on the text with these settings; see `Trainer` for the rest."""
        text, dev = self.pair.read("train"), self.pair.read("dev")
        return Trainer(model, text, dev, settings, self.session.seed, states, head_mask)

    def write_facts(self, out: Path, trainer: Trainer, model: Transformer) -> Row:
        """Write run.json and curves.csv, one validation a row; return what model.json says.

        That is, beside the shape of `model`, of the weights that the trainer has chosen.
        """
        write_run(out, self.run)
        write_rows(out / "curves.csv", CURVE_COLUMNS, trainer.progress.curve)
        row = trainer.chosen_row()
        return {
            "parameters": parameter_count(model),
            "precision": self.train.precision,
            "update": row["step"],
            "dev_loss": row["dev_loss"],
            **self.pair.subwords(),
            "provenance": self.session.origin,
        }


class TrainingRun(ModelRun):
    """A model to train by a recipe."""

    def finish(
        self, settings: ModelSettings, out: Path, start: Callable[[], Transformer] | None = None
    ) -> None:
        """Train to the end and write `out`. `start` makes the model to start from, if given.

        Writes model/weights.safetensors, model/model.json, model/last.safetensors, curves.csv,
        masks.csv, slopes.csv, run.json and updates/<n>.safetensors for the updates to keep.
        """
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            model = self.on_device(start() if start else self.fresh_model(settings), states)
            mask = make_head_mask(self.run, model.grid, self.train, self.session.seed)
            trainer = self.trainer(model, self.train, states, mask)
            trainer.fit()
            for update in self.train.keep_updates:
                save_weights(folder / "updates" / f"{update}.safetensors", states.take(update))
            progress, grid = trainer.progress, model.grid
            write_rows(folder / "masks.csv", MASK_COLUMNS, mask_rows(progress, grid))
            write_rows(folder / "slopes.csv", SLOPE_COLUMNS, slope_rows(progress, grid))
            save_weights(folder / "model" / "last.safetensors", trainer.last())
            facts = self.write_facts(folder, trainer, model)
            ModelFolder(folder / "model").save(model, trainer.chosen(), facts)


def _taken_format(states: StateStore, device: torch.device, width: int) -> str:
    """The format that `auto` stands for: the one that the training was begun in, if it was.

    So it goes on to the same last bit on a machine for which another one would be chosen. Of
    several processes the first one decides.
    """
    begun = states.begun_in() if is_first() else None
    taken = begun or pick_format("auto", device, width)
    taken = "bf16" if agree(is_first() and taken == "bf16") else "fp32"
    if is_first():
        why = "as the training was begun" if begun else f"for a model of width {width} here"
        print(f"resources.precision: auto takes {taken}, {why}", file=sys.stderr, flush=True)
    return taken


def mask_rows(progress: Progress, grid: HeadGrid) -> list[Row]:
    """How often each head was masked, a row per validation and head; none in a baseline.

    `step` is the last update of the interval that ends with the validation, `masked` the share of
    the interval's updates that masked the head, 0 to 1.
    """
    rows, start = [], 0
    for validation, counts in zip(progress.curve, progress.masks, strict=True):
        step = validation["step"]
        for address, count in zip(grid.heads() if counts else [], counts, strict=True):
            rows.append({"step": step, **address._asdict(), "masked": count / (step - start)})
        start = step
    return rows


def slope_rows(progress: Progress, grid: HeadGrid) -> list[Row]:
    """What first passes found of each head, a row per validation and head; none without one.

    Over all sentences of the interval that ends with update `step`: mean and standard deviation of
    ∂L(x)/∂ξ at ξ = 1, nats, above 0 where the loss would fall without the head; and the mean of
    each update's own importance, before any moving average, in the unit of the run.
    """
    rows = []
    for validation, slopes in zip(progress.curve, progress.slopes, strict=True):
        for address, found in zip(grid.heads() if slopes else [], slopes, strict=True):
            names = dict(zip(SLOPE_COLUMNS[-3:], found, strict=True))
            rows.append({"step": validation["step"], **address._asdict(), **names})
    return rows


def write_rows(path: Path, columns: tuple[str, ...], rows: list[Row]) -> None:
    """Write rows by the names of their columns as CSV; a cell without a value (None) is empty."""
    write_csv(path, columns, [[row[column] for column in columns] for row in rows])
