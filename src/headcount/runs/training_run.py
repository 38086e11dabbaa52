"""A training run from files to files: text in, model and curve out."""

import csv
import io
from pathlib import Path
from typing import Any

import torch

from headcount.base.addresses import HeadGrid
from headcount.base.files import read_json, sha256, write_text
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.run_names import BASELINE, RunName
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import read_parallel_text
from headcount.data.vocabulary import Vocabulary
from headcount.model.transformer import Transformer, parameter_count
from headcount.runs.checkpoint import StateStore, load_weights, save_model, save_weights
from headcount.runs.machine import pick_device, warn_of_slow_format
from headcount.runs.progress import CURVE_COLUMNS, Progress
from headcount.runs.train import Trainer

MASK_COLUMNS = ("step", "kind", "layer", "head", "masked")
Row = dict[str, Any]


class TrainingRun:
    """One model, its training text, and where it came from."""

    def __init__(
        self,
        bpe: Path,
        model: ModelSettings,
        train: TrainSettings,
        seed: int,
        origin: dict[str, Any],
        run: RunName = BASELINE,
    ):
        """`bpe`: folder of the segmented pair; `origin`: the run's provenance."""
        self.settings = train
        self.run = run
        self.seed = seed
        self.origin = origin
        words = [Vocabulary.load(bpe / f"{side}.vocab") for side in ("src", "tgt")]
        self.vocabularies = vocabulary_checksums(bpe)
        self.train, self.dev = (
            read_parallel_text(bpe / f"{split}.src", bpe / f"{split}.tgt", *words)
            for split in ("train", "dev")
        )
        joint = read_json(bpe / "segmentation.json")["joint"]
        torch.manual_seed(seed)
        self.model = Transformer(model, len(words[0]), len(words[1]), joint)
        self.device = pick_device(train.device)
        warn_of_slow_format(train.precision, self.device)
        self.model.to(self.device)

    @staticmethod
    def inputs(bpe: Path) -> list[Path]:
        """The files of the segmented pair that shape the run."""
        names = ("segmentation.json", "src.vocab", "tgt.vocab")
        texts = (f"{split}.{side}" for split in ("train", "dev") for side in ("src", "tgt"))
        return [bpe / name for name in (*names, *texts)]

    def finish(self, out: Path, state: Path, save_seconds: float) -> None:
        """Train to the end and write `out`; states of the unfinished run lie in `state`.

        Writes model/weights.safetensors, model/model.json, model/last.safetensors, curves.csv,
        masks.csv and updates/<n>.safetensors for the updates to keep, then forgets the states.
        """
        parts = ("settings", "seed", "code", "inputs", "versions")
        identity = {part: self.origin[part] for part in parts} | {"device": self.device.type}
        states = StateStore(state, identity, save_seconds)
        trainer = Trainer(
            self.model, self.train, self.dev, self.settings, self.seed, states, self.run
        )
        trainer.fit()
        for update in self.settings.keep_updates:
            kept = load_weights(states.kept(update))
            save_weights(out / "updates" / f"{update}.safetensors", kept)
        progress = trainer.progress
        write_text(out / "curves.csv", _as_csv(progress.curve, CURVE_COLUMNS))
        write_text(out / "masks.csv", _as_csv(mask_rows(progress, self.model.grid), MASK_COLUMNS))
        save_weights(out / "model" / "last.safetensors", trainer.last())
        facts = {
            "parameters": parameter_count(self.model),
            "best_update": progress.best_update,
            "best_dev_loss": progress.best_loss,
            "vocabularies": self.vocabularies,
            "provenance": self.origin,
        }
        save_model(out / "model", self.model, trainer.chosen(), facts)
        states.discard()


def vocabulary_checksums(bpe: Path) -> dict[str, str]:
    """SHA-256 of both vocabularies: a model's ids mean nothing under any other."""
    return {side: sha256(bpe / f"{side}.vocab") for side in ("src", "tgt")}


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


def _as_csv(rows: list[Row], columns: tuple[str, ...]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
