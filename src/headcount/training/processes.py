"""Several processes that make the updates of one training together.

Each computes a share of an update's batches. All random draws follow the seed, so that only sums go
between the processes, and an update equals the update of one process but for rounding.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import IO, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from headcount.base.errors import EnvironmentFault, UserError

T = TypeVar("T")
_Other = tuple[subprocess.Popen, IO[str]]  # a process that the first one started, and its prints
_HERE = "here"  # number of processes that have come, in the store of the first


def is_first() -> bool:
    """Return True in the process that writes and prints, which a single process always does."""
    return not dist.is_initialized() or dist.get_rank() == 0


def own_share(items: Iterable[T]) -> Iterator[tuple[int, T]]:
    """Return this process's share of items that all processes have, with their places."""
    first, step = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    return islice(enumerate(items), first, None, step)


def add_up(tensors: Sequence[Tensor]) -> None:
    """Replace tensors of one device by their sums over all processes, the same bits in each."""
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
    """Return True if the flag of any process is. All processes wait for each other here."""
    if not dist.is_initialized():
        return flag
    votes = torch.tensor([float(flag)])
    add_up([votes])
    return bool(votes)


@contextmanager
def together(count: int, gpus: bool) -> Iterator[None]:
    """Train in several processes within this context. The first process starts the others.

    Where torchrun or SLURM starts them all, this one joins them. `gpus`: each has chosen a GPU.
    """
    if count == 1:
        yield
        return
    _let_slurm_start(count)
    others: list[_Other] = []
    with ExitStack() as ends:
        try:
            store, rank = _meet(count, ends, others)
            backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
            dist.init_process_group(backend, store=store, rank=rank, world_size=count)
            ends.callback(dist.destroy_process_group)
            yield
        except RuntimeError as fault:
            if not isinstance(fault, dist.DistError) and "gloo" not in str(fault):
                raise
            time.sleep(1)  # the other process is about to end
            _require_none_failed(others, fault)
            raise EnvironmentFault(
                f"one of the {count} processes of this training has ended ({str(fault)[-200:]}). "
                "The same command goes on from the last saved state"
            ) from fault


def _meet(count: int, ends: ExitStack, others: list[_Other]) -> tuple[dist.Store, int]:
    """Return the store of all processes and this one's number, once `others` are started."""
    if _are_started(count):
        store, rank, _ = next(dist.rendezvous("env://"))
        store.add(_HERE, 1)
        return store, rank
    # Port 0 is a free one. A port that is drawn beforehand may be taken meanwhile.
    store = dist.TCPStore("127.0.0.1", 0, count, is_master=True, wait_for_workers=False)
    others += [ends.enter_context(_start(number, count, store.port)) for number in range(1, count)]
    while store.add(_HERE, 0) < len(others):
        _require_none_failed(others)
        time.sleep(0.02)
    return store, 0


def _let_slurm_start(count: int) -> None:
    """Replace this process by srun in a batch job that has as many tasks."""
    # Snakemake's plugin for SLURM hides the number of tasks, one a process, from its jobs.
    env = os.environ
    in_batch = "SLURMD_NODENAME" in env and "SLURM_STEP_NUM_TASKS" not in env
    tasks = env.get("SLURM_NTASKS", "" if "SLURM_JOB_NUM_NODES" in env else str(count))
    if in_batch and tasks == str(count) and "RANK" not in env:
        cores = torch.get_num_threads()  # srun does not take them from the job
        srun = ["srun", f"--ntasks={count}", f"--cpus-per-task={cores}", "--kill-on-bad-exit=1"]
        sys.stdout.flush()
        os.execvp("srun", [*srun, sys.executable, *sys.argv])


def _are_started(count: int) -> bool:
    """Return True if torchrun or srun started this process, and set torchrun's variables."""
    env = os.environ
    if "RANK" not in env and int(env.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        env["RANK"], env["LOCAL_RANK"] = env["SLURM_PROCID"], env["SLURM_LOCALID"]
        env["WORLD_SIZE"] = env["SLURM_STEP_NUM_TASKS"]
        # The first task is on the node of the batch script, which calls srun.
        env.setdefault("MASTER_ADDR", env["SLURM_LAUNCH_NODE_IPADDR"])
        env.setdefault("MASTER_PORT", str(20000 + int(env["SLURM_JOB_ID"]) % 10000))
    if "RANK" not in env:
        return False
    if int(env["WORLD_SIZE"]) != count:
        raise UserError(
            f"train.processes (flag --processes): expected {env['WORLD_SIZE']}, as many as were "
            f"started together, found {count}"
        )
    return True


@contextmanager
def _start(rank: int, count: int, port: int) -> Iterator[_Other]:
    """Run this command in another process, which ends with this context."""
    # HEADCOUNT_JOB ends it with the first process.
    env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "HEADCOUNT_JOB": os.getpid()}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    env = os.environ | {name: str(value) for name, value in env.items()}
    command = [sys.executable, *sys.argv]
    with (
        tempfile.TemporaryFile("w+") as prints,
        subprocess.Popen(command, env=env, stdout=prints, stderr=prints) as process,
    ):
        try:
            yield process, prints
        finally:
            try:
                process.wait(20)  # seconds; it has nothing left to do
            except subprocess.TimeoutExpired:
                process.kill()


def _require_none_failed(others: list[_Other], cause: RuntimeError | None = None) -> None:
    """Raise EnvironmentFault, with the last line of each process that has failed."""
    failed = []
    for number, (process, prints) in enumerate(others, start=2):
        if process.poll():
            prints.seek(0)
            line = (["it said nothing"] + prints.read().splitlines())[-1]
            failed.append(f"process {number} ended with {process.returncode}: {line}")
    if failed:
        raise EnvironmentFault(
            f"of the {len(others) + 1} processes of this training {'; '.join(failed)}. The same "
            "command goes on from the last saved state"
        ) from cause
