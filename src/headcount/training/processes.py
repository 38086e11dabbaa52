"""Several processes that make the updates of one training together.

Each computes a share of an update's batches. All that is drawn at random follows the seed, so that
only sums go between the processes, and an update is that of one process but for rounding.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from headcount.base.errors import EnvironmentFault, UserError

T = TypeVar("T")

_HERE = "here"  # how many processes have come, in the store of the first

PATIENCE = 20
"""Seconds in which a process that has nothing left to do is expected to end."""


def is_first() -> bool:
    """Whether this process is the one that writes files and speaks; alone, it is."""
    return not dist.is_initialized() or dist.get_rank() == 0


def own(items: Iterable[T]) -> Iterator[tuple[int, T]]:
    """This process's share of what all processes have in this order, with the places there."""
    first, step = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    return islice(enumerate(items), first, None, step)


def add_up(tensors: Sequence[Tensor]) -> None:
    """Put the sum over all processes into each of some tensors of one device.

    Every process gets the same bits; with three and more they depend on how many there are.
    """
    if not dist.is_initialized():
        return
    for dtype in {tensor.dtype: None for tensor in tensors}:
        alike = [tensor for tensor in tensors if tensor.dtype == dtype]
        flat = torch.cat([tensor.flatten() for tensor in alike])
        dist.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in alike])
        for tensor, part in zip(alike, parts, strict=True):
            tensor.copy_(part.view_as(tensor))


def agree(flag: bool) -> bool:
    """Whether any process says so; all of them wait for each other here."""
    if not dist.is_initialized():
        return flag
    votes = torch.tensor([float(flag)])
    add_up([votes])
    return bool(votes)


def leave_unless_first() -> None:
    """End this process, unless it is the first: what is left to do is that one's alone."""
    if not is_first():
        sys.exit(0)


@contextmanager
def together(count: int, gpus: bool) -> Iterator[None]:
    """Context in which so many processes train together; the first one starts the others.

    Where torchrun or SLURM starts them all, this one joins them. `gpus`: each computes on one,
    which it has chosen before. Raises EnvironmentFault if another one ends too early, or if two
    have one GPU; and UserError if another number of processes was started.
    """
    if count == 1:
        yield
        return
    _let_slurm_start(count)
    with _joined(count, gpus) if _are_started(count) else _started(count, gpus):
        try:
            yield
        finally:
            dist.destroy_process_group()


def _let_slurm_start(count: int) -> None:
    """In a batch job that has as many tasks, put srun into the place of this process.

    Snakemake's plugin for SLURM hides from its jobs how many they have, and much else; these are
    the workflow's, which asks for a task for each process.
    """
    told = os.environ
    in_batch = "SLURMD_NODENAME" in told and "SLURM_STEP_NUM_TASKS" not in told
    tasks = told.get("SLURM_NTASKS", "" if "SLURM_JOB_NUM_NODES" in told else str(count))
    if in_batch and tasks == str(count) and "RANK" not in told:
        cores = torch.get_num_threads()  # srun does not take them from the job
        srun = ["srun", f"--ntasks={count}", f"--cpus-per-task={cores}", "--kill-on-bad-exit=1"]
        sys.stdout.flush()
        os.execvp("srun", [*srun, sys.executable, *sys.argv])


def _are_started(count: int) -> bool:
    """Whether torchrun or srun started this process among others; says it in torchrun's words.

    Raises UserError if they are not as many as the settings say.
    """
    told = os.environ
    if "RANK" not in told and int(told.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        told["RANK"], told["LOCAL_RANK"] = told["SLURM_PROCID"], told["SLURM_LOCALID"]
        told["WORLD_SIZE"] = told["SLURM_STEP_NUM_TASKS"]
        # The first task is on the node of the batch script, which calls srun.
        told.setdefault("MASTER_ADDR", told["SLURM_LAUNCH_NODE_IPADDR"])
        told.setdefault("MASTER_PORT", str(20000 + int(told["SLURM_JOB_ID"]) % 10000))
    if "RANK" not in told:
        return False
    if int(told["WORLD_SIZE"]) != count:
        raise UserError(
            f"train.processes (flag --processes): expected {told['WORLD_SIZE']}, as many as were "
            f"started together, found {count}"
        )
    return True


@contextmanager
def _joined(count: int, gpus: bool) -> Iterator[None]:
    """Context in which this process belongs to those among which it was started."""
    store, rank, _ = next(dist.rendezvous("env://"))
    store.add(_HERE, 1)
    try:
        _make_group(store, rank, count, gpus)
        yield
    except RuntimeError as fault:
        if _is_lost_connection(fault):
            raise EnvironmentFault(
                f"process {rank + 1} of the {count} of this training: another one has ended. The "
                "same command goes on from the last saved state"
            ) from fault
        raise


@contextmanager
def _started(count: int, gpus: bool) -> Iterator[None]:
    """Context in which this process is the first of several, which it starts; none outlives it."""
    # Port 0 is one that is free; another that is drawn beforehand may be taken meanwhile.
    store = dist.TCPStore("127.0.0.1", 0, count, is_master=True, wait_for_workers=False)
    with ExitStack() as ends:
        others = [ends.enter_context(_other(rank, count, store.port)) for rank in range(1, count)]
        try:
            while store.add(_HERE, 0) < len(others):
                _require_none_failed(others)
                time.sleep(0.02)
            _make_group(store, 0, count, gpus)
            yield
        except RuntimeError as fault:
            if _is_lost_connection(fault):
                time.sleep(1)  # the other has closed it, and is about to end
                _require_none_failed(others, fault)
            raise


def _make_group(store: dist.Store, rank: int, count: int, gpus: bool) -> None:
    if gpus:
        _require_own_gpus(store, rank, count)
    backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=count)


def _require_own_gpus(store: dist.Store, rank: int, count: int) -> None:
    """Raise EnvironmentFault, in every process, if two have one GPU: NCCL refuses that."""
    uuid = torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
    store.set(f"gpu{rank}", f"{platform.node()} {uuid}")
    taken = {store.get(f"gpu{each}") for each in range(count)}
    if len(taken) < count:
        raise EnvironmentFault(
            f"train.processes (flag --processes): expected a GPU for each of {count}, found "
            f"{len(taken)} for all of them; lower it, give no shares of GPUs, or set device: cpu"
        )


@dataclass(frozen=True)
class _Other:
    """A process that the first one has started; what it prints is kept for the case of a fault."""

    rank: int
    process: subprocess.Popen
    prints: IO[str]

    def last_line(self) -> str:
        """What it has printed last."""
        self.prints.seek(0)
        return (["it said nothing"] + self.prints.read().splitlines())[-1]


@contextmanager
def _other(rank: int, count: int, port: int) -> Iterator[_Other]:
    """Context with a process that runs this very command, and has ended when the context does.

    It finds the first one by torchrun's words, and HEADCOUNT_JOB ends it with that one.
    """
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "HEADCOUNT_JOB": os.getpid()}
    told |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    with (
        tempfile.TemporaryFile("w+") as prints,
        subprocess.Popen(
            [sys.executable, *sys.argv],
            env=os.environ | {name: str(value) for name, value in told.items()},
            stdout=prints,
            stderr=prints,
        ) as process,
    ):
        try:
            yield _Other(rank, process, prints)
        finally:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def _require_none_failed(others: list[_Other], cause: RuntimeError | None = None) -> None:
    """Raise EnvironmentFault, with the last words of the processes that have failed."""
    failed = [
        f"process {other.rank + 1} ended with {other.process.returncode}: {other.last_line()}"
        for other in others
        if other.process.poll()
    ]
    if failed:
        raise EnvironmentFault(
            f"of the {len(others) + 1} processes of this training {'; '.join(failed)}. The same "
            "command goes on from the last saved state"
        ) from cause


def _is_lost_connection(fault: RuntimeError) -> bool:
    """Whether another process's end has caused a fault."""
    return isinstance(fault, dist.DistError) or "gloo" in str(fault)
