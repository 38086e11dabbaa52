"""What a job asks of a machine or a cluster: megabytes and minutes, by the model and the batches.

Each attempt asks for as much again, up to `LONGEST`. Memory was fitted to the peaks in
docs/history/speed_measured.md.
"""

import sys
from math import ceil
from typing import Any

from layout import Wildcards
from plan import Plan

from headcount.base.settings.experiment import Experiment

PROGRAM_MB = 800
"""Python, torch and the text, whatever the model."""

ROOM = 1.5
"""Over what a training needs."""

COPIES = 7
"""Of each weight in a training: itself, gradient, two moments, average, averaged and best model."""

ACTIVATIONS = (19, 4)
"""Numbers that a layer keeps of a position for the gradient, in widths of the model and of its
feed-forward layer: measured 35 widths where the one is four times the other."""

SECONDLY = {"cpu": 2e10, "gpu": 5e12}
"""Operations of a training that a core, or a GPU, is taken to do in a second. A core of
docs/history/speed_measured.md does seven times as many and more, so that few trainings meet their
limit; the number of a GPU is assumed, as none was at hand."""

START, LONGEST = 10, 2880
"""Minutes that every training has at least and at most: what meets the limit goes on from its
state."""


def parameters(settings: Experiment) -> int:
    """Parameters of the experiment's model, embeddings counted, biases and norms not."""
    model, bpe = settings.model, settings.bpe
    return model.layer_weights + (2 - bpe.joint) * bpe.assumed_pieces * model.d_model


def training_mb(settings: Experiment) -> int:
    """Megabytes of memory of a training in fp32 with one batch at a time."""
    model, (width, inner) = settings.model, ACTIVATIONS
    of_position = (model.encoder_layers + model.decoder_layers) * (
        width * model.d_model + inner * model.d_ff
    )
    numbers = COPIES * parameters(settings) + settings.train.batch_tokens * of_position
    return PROGRAM_MB + int(ROOM * 4 * numbers) // 10**6


def decoding_mb(settings: Experiment) -> int:
    """Megabytes of memory of a search, or of a pass over heads: less than a training's."""
    return PROGRAM_MB + (training_mb(settings) - PROGRAM_MB) // 2


def training_minutes(settings: Experiment, updates: float) -> int:
    """Minutes of so many updates, on the slow side; six operations a parameter and position."""
    train = settings.train
    work = 6 * parameters(settings) * train.batch_tokens * train.accumulate * updates
    rate = SECONDLY["gpu"] if train.device == "cuda" else SECONDLY["cpu"] * train.threads
    rate *= train.processes
    return min(START + ceil(work / rate / 60), LONGEST)


class Needs:
    """GPUs, memory and minutes of the jobs of one experiment, as resources of rules."""

    def __init__(self, plan: Plan, cluster: bool = False):
        """`cluster`: jobs run on other machines, and only settings say whether these have GPUs."""
        self._settings, self._pruning = plan.settings, plan.pruning
        self._cluster = cluster

    def job(self, section: str, mem_mb: int | None = None) -> dict[str, Any]:
        """GPUs and memory of a job of a section: one GPU for `cuda`, and here for `auto` too.

        A machine without a GPU limits that to none; see `limits`. Without `mem_mb` the job reads a
        translation model, and asks for what the experiment's needs.
        """
        amount = mem_mb or decoding_mb(self._settings)
        wanted = ("cuda",) if self._cluster else ("cuda", "auto")
        gpus = int(getattr(self._settings, section).device in wanted)

        def megabytes(wildcards: Wildcards, attempt: int) -> int:
            return attempt * amount

        return {"gpu": gpus, "mem_mb": megabytes}

    def training(self) -> dict[str, Any]:
        """GPUs, memory and minutes of a training or fine-tuning, and its tasks on a cluster.

        Each process has a GPU and the memory of its own; SLURM starts them on one node or several.
        """
        train = self._settings.train
        found = self.job("train", train.processes * training_mb(self._settings))
        found |= {"gpu": train.processes * found["gpu"], "runtime": self._minutes}
        if self._cluster and train.processes > 1:
            found |= {"mpi": "srun", "tasks": train.processes, "cpus_per_task": train.threads}
            found |= {"tasks_per_gpu": 1} if found["gpu"] else {}
        return found

    def say_devices(self) -> None:
        """Tell, on a cluster, that trainings ask for no GPU unless they are told to."""
        if self._cluster and self._settings.train.device == "auto":
            print(
                "note: on a cluster, train.device: auto asks for no GPU, since nobody can say "
                "whether nodes have one; set it, and decode.device, to cuda if they have",
                file=sys.stderr,
            )

    def _minutes(self, wildcards: Wildcards, attempt: int) -> int:
        updates = self._pruning.updates(wildcards["run"])
        return min(attempt * training_minutes(self._settings, updates), LONGEST)
