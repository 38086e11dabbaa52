"""What a job asks of a machine or a cluster: GPUs, megabytes and, of a cluster, minutes.

Each attempt asks for as much again. Memory was fitted to peaks that `benchmarks.memory` measured,
and tests/workflow/test_needs.py compares it with them.
"""

import sys
from collections.abc import Callable
from typing import Any

from layout import Wildcards
from leaving import leave
from plan import Plan

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment

PROGRAM_MB = 800
"""Python, torch and the text, whatever the model."""

SEARCH_MB = 500
"""The same of a search, which has no text for training."""

CUDA_MB = 5000
"""The same with what CUDA loads, of the machine's memory; assumed, as no GPU was at hand."""

ROOM = 1.5
"""Over what a training needs."""

COPIES = 7
"""Of each weight in a training: itself, gradient, two moments, average, averaged and best model."""

ACTIVATIONS = (19, 4)
"""Numbers that a layer keeps of a position for the gradient, in widths of the model and of its
feed-forward layer: measured 35 widths where the one is four times the other."""

SEARCHED = 8
"""Numbers that a search keeps of a hypothesis for each position of its source, in widths of the
model and for each layer of the decoder: keys and values of some more words than the source has."""

SCORED = 0.15
"""Numbers that it keeps of a hypothesis for each position of its source, in entries of the
vocabulary: two of the scores of all words, where a sentence has 13."""

RESUMED, LONGEST = ("train", "fine_tuning"), 2880
"""Sections whose jobs go on from a state where they met their limit, and how many minutes it is at
the most; others ask for all that they may take."""

OF_CLASSIFIERS = ("fine_tuning", "classifier_ablation")
"""Sections of classifiers; others are of translation."""

Minutes = Callable[[str, Wildcards, str], int]
"""Those of a job by its rule, its wildcards and the section whose device and threads it has."""


def parameters(settings: Experiment) -> int:
    """Parameters of the experiment's model, embeddings counted, biases and norms not."""
    model, bpe = settings.model, settings.bpe
    return model.layer_weights + (2 - bpe.joint) * settings.assumed_pieces * model.d_model


def training_mb(settings: Experiment) -> int:
    """Megabytes of memory of a training in fp32 with one batch at a time.

    On a GPU its batches lie there, and its weights here too, as states are saved.
    """
    model, (width, inner), train = settings.model, ACTIVATIONS, settings.train
    of_position = (model.encoder_layers + model.decoder_layers) * (
        width * model.d_model + inner * model.d_ff
    )
    on_gpu = train.device == "cuda"
    numbers = COPIES * parameters(settings) + (not on_gpu) * train.batch_tokens * of_position
    return (CUDA_MB if on_gpu else PROGRAM_MB) + _megabytes(numbers)


def decoding_mb(settings: Experiment, section: str) -> int:
    """Megabytes of memory of a search (section `decode`), or of a pass over heads."""
    if getattr(settings, section).device == "cuda":
        return CUDA_MB + _megabytes(parameters(settings))
    if section == "decode":
        return search_mb(settings)
    of_cpu = settings.train.model_copy(update={"device": "cpu"})
    training = training_mb(settings.model_copy(update={"train": of_cpu}))
    return PROGRAM_MB + (training - PROGRAM_MB) // 2


def search_mb(settings: Experiment) -> int:
    """Megabytes of memory of a search on a CPU, where each thread has a batch of its own.

    Each weight is there twice, the other time in the order in which products read it.
    """
    model, decode = settings.model, settings.decode
    of_position = SEARCHED * model.decoder_layers * model.d_model
    of_position += SCORED * settings.assumed_pieces
    hypotheses = decode.threads * decode.batch_tokens * decode.beam
    return SEARCH_MB + _megabytes(2 * parameters(settings) + hypotheses * of_position)


def _megabytes(numbers: float) -> int:
    return int(ROOM * 4 * numbers) // 10**6


def minutes(plan: Plan) -> Minutes:
    """Minutes of each job; leaves with exit code 2 where nothing says how much text there is."""
    # Imported here, for no other command has to wait for torch.
    from minutes import MinutesOfJobs

    try:
        return MinutesOfJobs(plan).of
    except UserError as fault:
        leave(fault)


class Needs:
    """GPUs, memory and minutes of the jobs of one experiment, as resources of rules."""

    def __init__(self, plan: Plan, cluster: bool = False, minutes: Minutes | None = None):
        """`cluster`: jobs run on other machines, and only settings say whether these have GPUs.

        Without `minutes` no job says its own.
        """
        self._settings = plan.settings
        self._classifiers = bool(plan.classifiers.corpora)
        self._cluster, self._minutes = cluster, minutes

    def job(self, section: str, mem_mb: int | None = None) -> dict[str, Any]:
        """GPUs, memory and minutes of a job of a section.

        One GPU for `cuda`, and here for `auto` too. A machine without a GPU limits that to none;
        see `limits`. Without `mem_mb` the job reads a translation model, and asks for what the
        experiment's needs.
        """
        device = getattr(self._settings, section).device
        amount = mem_mb or decoding_mb(self._settings, section)
        wanted = ("cuda",) if self._cluster else ("cuda", "auto")

        def megabytes(wildcards: Wildcards, attempt: int) -> int:
            return attempt * amount

        return {"gpu": int(device in wanted), "mem_mb": megabytes} | self.text(section)

    def translating(self) -> dict[str, Any]:
        """What a job asks that translates with a whole model.

        CTranslate2 takes no GPU. It has the weights once more, and while it loads them twice.
        """
        if self._settings.decode.engine == "headcount":
            return self.job("decode")
        copies = 2 * _megabytes(parameters(self._settings))
        return self.job("decode", search_mb(self._settings) + copies) | {"gpu": 0}

    def text(self, section: str = "decode") -> dict[str, Any]:
        """Minutes of a job, on the device and threads of a section if it computes at all."""
        minutes, resumes = self._minutes, section in RESUMED
        if minutes is None:
            return {}

        def runtime(wildcards: Wildcards, attempt: int, rulename: str) -> int:
            asked = attempt * minutes(rulename, wildcards, section)
            return min(asked, LONGEST) if resumes else asked

        return {"runtime": runtime}

    def training(self) -> dict[str, Any]:
        """GPUs, memory and minutes of a training or fine-tuning, and its tasks on a cluster.

        Each process has a GPU and the memory of its own; SLURM starts them on one node or several.
        """
        train = self._settings.train
        found = self.job("train", train.processes * training_mb(self._settings))
        found |= {"gpu": train.processes * found["gpu"]}
        if self._cluster and train.processes > 1:
            found |= {"mpi": "srun", "tasks": train.processes, "cpus_per_task": train.threads}
            found |= {"tasks_per_gpu": 1} if found["gpu"] else {}
        return found

    def timing(self, section: str) -> dict[str, Any]:
        """What a job asks that times something: on a cluster, a node that it shares with none."""
        alone = {"slurm_extra": "--exclusive"} if self._cluster else {}
        return self.job(section) | alone

    def say_devices(self) -> None:
        """Tell, on a cluster, the sections whose jobs ask for no GPU unless they are told to."""
        unsaid = [
            name
            for name, section in self._settings
            if getattr(section, "device", "") == "auto"
            and (self._classifiers if name in OF_CLASSIFIERS else self._settings.pairs)
        ]
        if self._cluster and unsaid:
            print(
                "note: on a cluster, device: auto asks for no GPU, since nobody can say whether "
                f"nodes have one; it is that of {', '.join(unsaid)}; set it to cuda, where it "
                "matters, if they have",
                file=sys.stderr,
            )
