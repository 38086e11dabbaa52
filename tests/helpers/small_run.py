"""A training run of seconds on generated text, for tests that stop and resume it."""

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from named_runs import RUNS
from project_copy import timeless

from headcount.base.settings.data import BpeSettings, SyntheticSettings, TextSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.base.settings.training_runs import BASELINE, RunSettings
from headcount.data.bpe import segment_corpus
from headcount.data.synthetic.corpus import write_corpus
from headcount.data.text import write_split
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.pruning_run import PruningRun
from headcount.training.training_run import TrainingRun

MODEL = ModelSettings(
    preset="tiny", encoder_layers=2, decoder_layers=1, d_model=24, d_ff=32, heads=3, dropout=0.2
)
# 60 pairs in batches of 150 make about 8 batches an epoch: several epochs in 24 updates, each of
# two batches, so that a stop falls in the middle of an epoch and an epoch ends inside an update.
TRAIN = TrainSettings(
    updates=24,
    batch_tokens=150,
    accumulate=2,
    schedule="cosine",
    peak_lr=5e-3,
    warmup_updates=4,
    dev_interval=7,
    keep_updates=[5, 16],
)
GATES = GatesSettings(updates=11, peak_lr=2e-3, warmup_updates=2, dev_interval=4, lr=0.4)


@dataclass(frozen=True)
class SmallRun:
    """Where the text lies, and the settings."""

    bpe: Path
    train: TrainSettings = TRAIN
    model: ModelSettings = MODEL
    seed: int = 3
    run: RunSettings = BASELINE
    save_seconds: float = 0  # the state is saved after every update

    def finish(self, out: Path, state: Path) -> None:
        """Train to the end."""
        settings = {
            "run": self.run.label,
            "model": self.model.model_dump(),
            "train": self.train.model_dump(),
        }
        origin = {**small_origin(settings), "seed": self.seed}
        resumable = self.seed, origin, state, self.save_seconds
        run = TrainingRun(self.train, *resumable, self.run, PairFolder(self.bpe))
        run.finish(self.model, out)


@dataclass(frozen=True)
class SmallGates:
    """A gates run on the model of such a training run."""

    bpe: Path
    start: Path  # folder of the model
    name: str
    gates: GatesSettings = GATES
    train: TrainSettings = TRAIN
    save_seconds: float = 0

    def finish(self, out: Path, state: Path) -> None:
        """Fine-tune to the end."""
        run = RUNS[self.name]
        resumable = 3, small_origin({"run": self.name}), state, self.save_seconds
        PruningRun(self.train, *resumable, run, PairFolder(self.bpe)).finish(
            ModelFolder(self.start), out, gates=self.gates
        )


def small_origin(settings: dict) -> dict:
    """Provenance of a run in a test."""
    return {"settings": settings, "seed": 3, "code": "", "inputs": {}, "versions": {}}


def segment(folder: Path, pairs: int = 60) -> Path:
    """Generate a corpus, clean and segment it; returns the folder that training reads.

    It is made once and copied: many files of tests begin with it.
    """
    shutil.copytree(_segmented(pairs), folder, dirs_exist_ok=True)
    return folder / "bpe"


@cache
def _segmented(pairs: int) -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    size = SyntheticSettings(seed=7, train_pairs=pairs, dev_pairs=12, test_pairs=12)
    write_corpus(folder / "raw", "small", size)
    texts = {}
    for split in ("dev", "train"):
        src, tgt, counts = (folder / f"{split}.{end}" for end in ("src", "tgt", "json"))
        texts[split] = src, tgt
        source = folder / "raw" / "manifest.json"
        write_split(source, ("en", "art"), split, TextSettings(), [], texts[split], counts)
    bpe = BpeSettings(merges=60)
    segment_corpus(texts["train"], texts["dev"], ("en", "art"), True, bpe, folder / "bpe")
    return folder


def outcome(folder: Path) -> dict[str, bytes | list[str]]:
    """Return all that a finished run wrote; of the curve, columns that do not tell the time."""
    paths = [*folder.rglob("*.safetensors"), folder / "model" / "model.json", *folder.glob("*.csv")]
    files = {path.name: timeless(path) for path in paths}
    return files | {"curve": files.pop("curves.csv").decode().splitlines()}
