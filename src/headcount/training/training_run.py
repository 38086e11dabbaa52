"""A training run from files to files: text in, model and curve out."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headcount.base import command
from headcount.base.addresses import HeadGrid
from headcount.base.files import write_csv
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import BASELINE, RunSettings, write_run
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import ParallelText
from headcount.model.machine import pick_device, warn_of_slow_format
from headcount.model.transformer import Transformer, parameter_count
from headcount.store.checkpoint import save_weights
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import Checksums, PairFolder
from headcount.training.headmask import make_head_mask
from headcount.training.progress import CURVE_COLUMNS, Progress
from headcount.training.states import StateStore
from headcount.training.train import Trainer

MASK_COLUMNS = ("step", "kind", "layer", "head", "masked")
Row = dict[str, Any]


@dataclass(frozen=True)
class SegmentedPair:
    """The text of a pair as training reads it."""

    train: ParallelText
    dev: ParallelText
    src_size: int  # of the vocabularies
    tgt_size: int
    joint: bool  # one vocabulary for both languages
    subwords: Checksums  # SHA-256 of what ids mean, as model.json has it

    @classmethod
    def read(cls, pair: PairFolder) -> "SegmentedPair":
        """What lies in the folder of a segmented pair."""
        sizes = map(len, pair.vocabularies())
        joint = pair.segmentation()["joint"]
        return cls(pair.read("train"), pair.read("dev"), *sizes, joint, pair.subwords())

    def fresh_model(self, settings: ModelSettings, seed: int) -> Transformer:
        """An untrained model for this text, on the CPU; its weights are drawn by the seed."""
        torch.manual_seed(seed)
        return Transformer(settings, self.src_size, self.tgt_size, self.joint)


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
        (workflow/engine.py), so that a run which ends before that is not trained again.
        """
        states = self.store(pick_device(settings.device))
        finished = states.finished
        with states.held():
            if finished.is_whole():
                print(f"trained before; outputs taken from {finished.folder}", file=sys.stderr)
                yield None, None
            else:
                if finished.folder.exists():
                    warning = f"{finished.folder}: damaged, so not taken for the outputs"
                    print(warning, file=sys.stderr)
                with finished.written(out) as folder:
                    yield states, folder
            states.drop()
            finished.place(out)
            if not command.has_engine():
                states.discard()

    def store(self, device: torch.device) -> StateStore:
        """The states of this run, and of no other."""
        parts = ("settings", "seed", "code", "inputs", "versions")
        identity = {part: self.origin[part] for part in parts} | {"device": device.type}
        return StateStore(self.state, identity, self.save_seconds)


@dataclass(frozen=True)
class TrainingRun:
    """A model to train by a recipe: its sizes, its training text, and where it came from."""

    pair: PairFolder
    model: ModelSettings
    train: TrainSettings
    session: Session
    run: RunSettings = BASELINE

    def finish(self, out: Path) -> None:
        """Train to the end and write `out`.

        Writes model/weights.safetensors, model/model.json, model/last.safetensors, curves.csv,
        masks.csv, run.json and updates/<n>.safetensors for the updates to keep.
        """
        with self.session.unfinished(self.train, out) as (states, folder):
            if not states:
                return
            seed = self.session.seed
            text = SegmentedPair.read(self.pair)
            model = on_device(text.fresh_model(self.model, seed), self.train)
            mask = make_head_mask(self.run, model.grid.size, self.train, seed)
            trainer = Trainer(model, text.train, text.dev, self.train, seed, states, mask)
            trainer.fit()
            for update in self.train.keep_updates:
                save_weights(folder / "updates" / f"{update}.safetensors", states.take(update))
            self._write(folder, trainer, text.subwords)

    def _write(self, out: Path, trainer: Trainer, subwords: Checksums) -> None:
        """Write all but the kept updates."""
        model, progress = trainer.model, trainer.progress
        write_run(out, self.run)
        write_curve(out, progress)
        write_rows(out / "masks.csv", MASK_COLUMNS, mask_rows(progress, model.grid))
        save_weights(out / "model" / "last.safetensors", trainer.last())
        facts = model_facts(model, trainer, subwords, self.session.origin)
        ModelFolder(out / "model").save(model, trainer.chosen(), facts)


def on_device(model: Transformer, settings: TrainSettings) -> Transformer:
    """The model where the settings say that it is trained; warns of a format that is slow there."""
    device = pick_device(settings.device)
    warn_of_slow_format(settings.precision, device)
    return model.to(device)


def write_curve(out: Path, progress: Progress) -> None:
    """Write curves.csv, one validation a row."""
    write_rows(out / "curves.csv", CURVE_COLUMNS, progress.curve)


def model_facts(
    model: Transformer, trainer: Trainer, subwords: Checksums, origin: dict[str, Any]
) -> Row:
    """What model.json says of a trained model, beside its shape: of the weights that it has."""
    row = trainer.chosen_row()
    return {
        "parameters": parameter_count(model),
        "update": row["step"],
        "dev_loss": row["dev_loss"],
        **subwords,
        "provenance": origin,
    }


def mask_rows(progress: Progress, grid: HeadGrid) -> list[Row]:
    """How often each head was masked, a row per validation and head; none in a baseline.

    `step` is the last update of the interval that ends with the validation, `masked` the share of
    the interval's updates that masked the head, 0 to 1.
    """
    rows, start = [], 0
    for validation, counts in zip(progress.curve, progress.masks, strict=True):
        step = validation["step"]
        heads = grid.heads() if counts else []
        for address, count in zip(heads, counts, strict=True):
            share = {"step": step, **address._asdict(), "masked": count / (step - start)}
            rows.append(share)
        start = step
    return rows


def write_rows(path: Path, columns: tuple[str, ...], rows: list[Row]) -> None:
    """Write rows by the names of their columns as CSV; a cell without a value (None) is empty."""
    write_csv(path, columns, [[row[column] for column in columns] for row in rows])
