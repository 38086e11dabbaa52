"""Memory, GPUs and time that this machine has and jobs ask for, and the lock of the folder.

Every further attempt of a job asks for as much again. A profile overrides any of these by
`set-resources`.
"""

import fcntl
import os
import re
import subprocess
import sys
from importlib import metadata
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from plan.plan import Plan

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import hold
from headcount.base.settings.experiment import Experiment
from headcount.model.gpu_slots import SLOTS

LOCK = Path(".headcount.lock")  # not in .snakemake, which people delete when they look for locks
_held = []  # open files: closing one would drop its lock


def require_folders(experiment: str) -> None:
    """Raise a fault for folders that can't be written, where Snakemake would show a traceback."""
    for folder in (".", ".snakemake", "data", "results", f"results/{experiment}"):
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise UserError(
                f"{folder}: expected a folder, found a file, or a link that leads nowhere; move it "
                "elsewhere, or make the folder that it leads to"
            )
        if os.path.exists(folder) and not os.access(folder, os.W_OK):
            raise EnvironmentFault(
                f"{Path(folder).resolve()} is read-only, and a dry run needs to write too; "
                "make it writable, or copy the project elsewhere"
            )


def is_held() -> bool:
    """Return whether another run works in this folder."""
    try:
        with LOCK.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:  # no lock yet, or one that `hold_folder` reports
        return False


def hold_folder(held_before: bool = False) -> None:
    """Take the folder's lock until this process ends. The kernel drops it however it ends.

    Raises EnvironmentFault if another run works, or worked when this one began to plan: Snakemake
    would make again what that run has finished.
    """
    _held.append(hold(LOCK, f"running this workflow in {Path.cwd()}"))
    if held_before:
        raise EnvironmentFault(
            f"another run in {Path.cwd()} finished while this one was planning; run the same "
            "command again"
        )


CONTAINER = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # of cgroups' first version
)
"""Limits of a container, in bytes; `max`, or more than there is, without a limit."""


def gpus() -> list[str]:
    """Return the GPUs that this process may use, as CUDA names them, or none if torch uses none."""
    if metadata.version("torch").endswith("+cpu"):
        return []
    try:
        listing = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    count = sum(line.startswith("GPU ") for line in listing.stdout.splitlines())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") if count else ""
    if visible is None:
        return list(map(str, range(count)))
    # CUDA looks no further than the first name that it does not know.
    return list(takewhile(re.compile("[^-]").match, visible.split(",")))


def memory_mb() -> int:
    """Return the megabytes of memory that this machine, or this container, has."""
    limits = [path.read_text().strip() for path in CONTAINER if path.exists()]
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *(int(limit) for limit in limits if limit != "max")]) // 10**6


def slots(devices: list[str], shares: int) -> str:
    """Return `SLOTS` for so many jobs at a time on these GPUs (empty without a GPU)."""
    return ",".join(devices[number % len(devices)] for number in range(shares)) if devices else ""


def set_limits(workflow) -> None:
    """Limit the jobs of this machine together to what it has (`workflow` is Snakemake's own).

    Memory and GPUs that `--resources` names stay as they are: more shares than GPUs let several
    jobs use one. A job that asks for more than there is gets what there is.
    """
    limits, devices = workflow.global_resources, gpus()
    limits.setdefault("mem_mb", memory_mb())
    shares = limits.setdefault("gpu", len(devices)).value
    os.environ[SLOTS] = slots(devices, shares)
    if devices and not shares:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif "CUDA_VISIBLE_DEVICES" not in os.environ:
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as nvidia-smi counts them


def run_in_turn(workflow) -> None:
    """Let jobs of a group run in turn on a cluster, with the resources of the largest."""
    workflow.global_resources["turn"] = 1
    workflow.resource_scopes["turn"] = "local"  # else the whole cluster would have one


class Size(NamedTuple):
    """Resources of jobs of models up to a size."""

    parameters: float
    train_mb: int  # with 4,096 tokens in a batch
    search_mb: int  # and all jobs that read a trained model
    train_minutes: int
    minutes: int


# Memory covers the peaks in tests/workflow/measured_memory.csv. Minutes are for one slow core.
SIZES = (
    Size(1e6, 1000, 800, 120, 60),
    Size(3e6, 1500, 1200, 360, 60),
    Size(1e7, 2500, 2000, 720, 120),
    Size(6.5e7, 9000, 5000, 1440, 360),
    Size(1e8, 12000, 6000, 2880, 720),
    Size(inf, 24000, 12000, 2880, 1440),
)
TEXT_MINUTES = 60
CUDA_MB = 5000
"""Memory of a process that uses CUDA, beside its share of a model."""

LONGEST = 2880
"""Longest time limit of a training in minutes: it resumes after its limit."""


def parameters(settings: Experiment) -> int:
    """Return the number of parameters of the experiment's model, without biases and norms."""
    model, bpe = settings.model, settings.bpe
    return model.layer_weights + (2 - bpe.joint) * settings.assumed_pieces * model.d_model


def size_of(settings: Experiment) -> Size:
    """Return the row of `SIZES` for the experiment's model."""
    count = parameters(settings)
    return next(size for size in SIZES if count <= size.parameters)


def training_mb(settings: Experiment) -> int:
    """Return the megabytes of memory that one process of a training asks for."""
    if settings.train.device == "cuda":
        return CUDA_MB + size_of(settings).search_mb
    return int(size_of(settings).train_mb * max(1, settings.train.batch_tokens / 4096))


class JobResources:
    """Resources of the rules of one experiment."""

    def __init__(self, plan: Plan, cluster: bool = False):
        """With `cluster`, jobs run on other machines, whose GPUs are not known here."""
        self._settings, self._size, self._cluster = plan.settings, size_of(plan.settings), cluster

    def threads(self, section: str) -> int:
        """Return the cores that a job uses. A training has threads in each of its processes."""
        settings = getattr(self._settings, section)
        return getattr(settings, "cores", settings.threads)

    def job(self, section: str, mem_mb: int | None = None) -> dict[str, Any]:
        """Return GPUs (of `auto`: none on a cluster), memory and minutes of a job with a model."""
        device = getattr(self._settings, section).device
        amount = mem_mb or self._size.search_mb + CUDA_MB * (device == "cuda")
        gpu = device == "cuda" or device == "auto" and not self._cluster
        return {"gpu": int(gpu)} | self._limits(amount, self._size.minutes)

    def translating(self) -> dict[str, Any]:
        """Return the resources of a translation with a whole model. CTranslate2 takes no GPU."""
        own = self._settings.decode.engine == "headcount"
        return self.job("decode") | ({} if own else {"gpu": 0})

    def text(self) -> dict[str, Any]:
        """Return the resources of a job that reads or writes text."""
        return self._limits(None, TEXT_MINUTES)

    def training(self) -> dict[str, Any]:
        """Return the resources of a training: a GPU and memory for each of its processes."""
        train = self._settings.train
        asked = self.job("train") | self._limits(
            train.processes * training_mb(self._settings), self._size.train_minutes
        )
        asked["gpu"] *= train.processes
        if self._cluster and train.processes > 1:
            asked |= {"mpi": "srun", "tasks": train.processes, "cpus_per_task": train.threads}
            asked |= {"tasks_per_gpu": 1} if asked["gpu"] else {}
        return asked

    def timing(self, section: str) -> dict[str, Any]:
        """Return the resources of a job that times something: on a cluster, a node of its own."""
        return self.job(section) | ({"slurm_extra": "--exclusive"} if self._cluster else {})

    def warn_of_devices(self) -> None:
        """Warn, on a cluster, that jobs ask for no GPU because of `device: auto`."""
        if self._cluster and self._settings.resources.device == "auto":
            print(
                "note: on a cluster, device: auto asks for no GPU. Set resources.device: cuda if "
                "the nodes have GPUs.",
                file=sys.stderr,
            )

    def _limits(self, mem_mb: int | None, minutes: int) -> dict[str, Any]:
        """Return memory and, on a cluster, minutes as functions of the attempt."""
        limits: dict[str, Any] = {}
        if mem_mb:
            limits["mem_mb"] = lambda wildcards, attempt: attempt * mem_mb
        if self._cluster:
            limits["runtime"] = lambda wildcards, attempt: min(attempt * minutes, LONGEST)
        return limits
