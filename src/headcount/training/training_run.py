"""A training run from files to files: text in, model and curve out."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headcount.base import command, ending
from headcount.base.addresses import Head
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
from headcount.training.progress import CURVE_COLUMNS
from headcount.training.states import StateStore
from headcount.training.train import Trainer

MASK_COLUMNS = ("step", "kind", "layer", "head", "masked")
"""Share of the updates since the last validation that masked the head. None in a baseline."""
SLOPE_COLUMNS = (*MASK_COLUMNS[:-1], "slope_mean", "slope_sd", "importance")
"""Mean and SD of ∂L(x)/∂ξ at ξ = 1 over the sentences of these updates, nats, above 0 where the
loss would fall without the head. Mean importance, before any moving average, in the run's unit."""
Row = dict[str, Any]


@dataclass
class Session:
    """A run that can be resumed, with its settings."""

    train: Any  # settings of the training: the baseline's, of a pruned run as well
    seed: int
    origin: dict[str, Any]  # the run's provenance
    state: Path  # folder of the states of the unfinished run
    save_seconds: float  # between two saved states

    @contextmanager
    def unfinished(self, out: Path) -> Iterator[tuple[StateStore | None, Path | None]]:
        """Yield the states to go on from, and a folder whose files are put in `out` at the end.

        Both are None if the outputs lie finished beside the states. Of several processes only the
        first writes. The others leave in `Trainer.fit`.
        """
        identity = {part: self.origin[part] for part in command.IDENTITY}
        identity["device"] = pick_device(self.train.device).type
        states = StateStore(self.state, identity, self.save_seconds)
        finished = states.finished
        with together(getattr(self.train, "processes", 1), gpus=identity["device"] == "cuda"):
            if not is_first():
                yield (None, None) if agree(False) else (states, out)
                return
            with states.locked():
                if agree(finished.is_whole()):
                    print(f"trained before; outputs taken from {finished.folder}", file=sys.stderr)
                    yield None, None
                else:
                    if finished.folder.exists():
                        print(f"{finished.folder}: damaged, so not used", file=sys.stderr)
                    with finished.written(out) as folder:
                        yield states, folder
                states.drop()
                finished.place(out)
                if not ending.has_engine():
                    remove_folder(states.folder)  # beside it may lie other runs' states


@dataclass
class ModelRun(Session):
    """A run that makes a model, from the text of a pair to files."""

    run: Run
    pair: PairFolder

    def fresh_model(self, settings: ModelSettings) -> Transformer:
        """Return an untrained model for the text, on the CPU, drawn by the seed."""
        sizes = map(len, self.pair.vocabularies())
        joint = self.pair.segmentation()["joint"]
        torch.manual_seed(self.seed)
        return Transformer(settings, *sizes, joint)

    def on_device(self, model: Transformer, states: StateStore) -> Transformer:
        """Return the model on its device, and replace `auto` precision by fp32 or bf16."""
        device, width = pick_device(self.train.device), model.settings.d_model
        if self.train.precision == "auto":
            before = states.precision() if is_first() else None
            precision = before or pick_format("auto", device, width)
            precision = "bf16" if agree(is_first() and precision == "bf16") else "fp32"
            self.train = self.train.model_copy(update={"precision": precision})
            if is_first():
                why = (
                    "as the training was begun" if before else f"for a model of width {width} here"
                )
                print(f"resources.precision: auto takes {precision}, {why}", file=sys.stderr)
        warn_of_slow_format(self.train.precision, device)
        return model.to(device)

    def trainer(
        self,
        model: Transformer,
        settings: TrainSettings,
        states: StateStore,
        head_mask: HeadMask | None = None,
    ) -> Trainer:
        """Return a trainer of the model on the text with these settings."""
        text, dev = self.pair.read("train"), self.pair.read("dev")
        return Trainer(model, text, dev, settings, self.seed, states, head_mask)

    def write_facts(self, out: Path, trainer: Trainer, model: Transformer) -> Row:
        """Write run.json and curves.csv. Return the facts of the chosen weights for model.json."""
        write_run(out, self.run)
        curve = [[row[column] for column in CURVE_COLUMNS] for row in trainer.progress.curve]
        write_csv(out / "curves.csv", CURVE_COLUMNS, curve)
        row = trainer.chosen_row()
        return {
            "parameters": parameter_count(model),
            "precision": self.train.precision,
            "update": row["step"],
            "dev_loss": row["dev_loss"],
            **self.pair.subwords(),
            "provenance": self.origin,
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
        with self.unfinished(out) as (states, folder):
            if not states:
                return
            model = self.on_device(start() if start else self.fresh_model(settings), states)
            mask = make_head_mask(self.run, model.grid, self.train, self.seed)
            trainer = self.trainer(model, self.train, states, mask)
            trainer.fit()
            for update in self.train.keep_updates:
                weights = states.load_checkpoint(update)
                save_weights(folder / "updates" / f"{update}.safetensors", weights)
            for name, columns in (("masks", MASK_COLUMNS), ("slopes", SLOPE_COLUMNS)):
                values = getattr(trainer.progress, name)
                rows = head_rows(model.grid.heads(), trainer.steps(), values)
                write_csv(folder / f"{name}.csv", columns, rows)
            save_weights(folder / "model" / "last.safetensors", trainer.last())
            facts = self.write_facts(folder, trainer, model)
            ModelFolder(folder / "model").save(model, trainer.chosen(), facts)


def head_rows(
    heads: Sequence[Head], steps: Sequence[int], values: Sequence[Sequence[Sequence[float]]]
) -> list[list[Any]]:
    """Return step, address and numbers of each head in a row, from the numbers at every step."""
    return [
        [step, *head, *numbers]
        for step, of_step in zip(steps, values, strict=True)
        for head, numbers in zip(heads if of_step else [], of_step, strict=True)
    ]
