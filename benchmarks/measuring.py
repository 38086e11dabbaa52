"""Timing in turns, the machine's ceiling, and what every benchmark prints and keeps."""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.results import record
from benchmarks.results.timings import Timed, table
from headcount.base.errors import EnvironmentFault
from headcount.deployment.speed import take_turns
from headcount.model.machine import pick_device, use_threads

Clock = Callable[[], float]  # seconds since some moment
Times = dict[str, list[float]]  # seconds of every repeat, by contender

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
CEILING_SIZE = {"cpu": 2048, "cuda": 8192}  # of square matrices; enough to fill a GPU
CEILING_SECONDS = 1.0


@dataclass(frozen=True)
class Work:
    """What one run of a contender gets through."""

    units: dict[str, float]  # such as {"sentences": 1014, "tokens": 14950}
    flops: float  # of the matrix products that the task needs; see `flops`


@dataclass(frozen=True)
class Contender:
    """One way to do the task; `run` does all of its work once."""

    name: str
    run: Callable[[], object]
    work: Work
    precision: str = "fp32"  # number format of its matrix products


class Bench:
    """The machine that a benchmark runs on, and how the flags say to measure there."""

    def __init__(self, args: argparse.Namespace):
        """Takes the threads, finds the ceilings, and prints the machine's facts."""
        use_threads(args.threads)
        self.args = args
        self.device = pick_device(args.device)
        self.clock = CLOCKS[args.clock]
        self.ceiling = ceilings(self.device, self.clock)
        gpu = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else ""
        self.where = record.where(args.threads, gpu, self.ceiling)
        print(machine_facts(self.where), end="\n\n")

    def measure(self, contenders: Sequence[Contender], title: str) -> str:
        """A title and the table of the contenders, who take turns.

        A file of results, if the flags name one, gets them as well.
        """
        args = self.args
        times = alternate(
            contenders,
            args.repeats,
            args.warm_up,
            self.device,
            args.threads,
            self.clock,
            at_most=math.inf if args.at_most is None else args.at_most,
        )
        timed = [
            Timed(each.name, each.precision, each.work.units, each.work.flops, times[each.name])
            for each in contenders
        ]
        found = {"benchmark": Path(sys.argv[0]).stem, "title": title, "where": self.where}
        found |= {"flags": record.told(args), "timed": [each.cells() for each in timed]}
        record.append(args.results, found)
        return f"\n{title}\n\n{table(timed, self.ceiling)}"


def alternate(
    contenders: Sequence[Contender],
    repeats: int,
    warm_up: int,
    device: torch.device,
    threads: int,
    clock: Clock,
    at_most: float = math.inf,
) -> Times:
    """Seconds of each contender's runs, taken in turns after `warm_up` unmeasured ones.

    There are `repeats` rounds, or fewer if `at_most` seconds are over: each round that begins is
    ended, and there is one. Torch's threads are set anew before each run: CTranslate2 changes them
    under its feet.
    """
    times: Times = {contender.name: [] for contender in contenders}
    end, before = time.monotonic() + at_most, 0
    for number, contender in take_turns(contenders, repeats, warm_up):
        if number > max(before, 1) and time.monotonic() > end:
            break
        before = number
        torch.set_num_threads(threads)
        start = clock()
        contender.run()
        finish(device)
        if number > 0:
            times[contender.name].append(clock() - start)
    return times


def finish(device: torch.device) -> None:
    """Wait until a GPU has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def ceilings(device: torch.device, clock: Clock) -> dict[str, float]:
    """GFLOP/s of the fastest square matrix products found, by number format: `fp32`, `bf16`.

    On a CPU torch multiplies fp32 by way of its BLAS or of oneDNN; the faster one counts.
    """
    size = CEILING_SIZE[device.type]
    found = {"fp32": _matmul_rate(device, torch.float32, size, clock)}
    if device.type == "cpu":
        # Without the instructions for it, one large bf16 product takes half a minute.
        kinds = {"fp32": torch.float32, "bf16": torch.bfloat16}
        small = {name: _matmul_rate(device, kind, 256, clock) for name, kind in kinds.items()}
        if small["bf16"] < small["fp32"]:
            return found | {"bf16": small["bf16"]}
    return found | {"bf16": _matmul_rate(device, torch.bfloat16, size, clock)}


def formats(asked: str, ceiling: dict[str, float]) -> list[str]:
    """Number formats to measure of `fp32`, `bf16` or `both`; says why if bf16 is left out.

    Raises EnvironmentFault if nothing is left then.
    """
    wanted = ["fp32", "bf16"] if asked == "both" else [asked]
    if "bf16" in wanted and ceiling["bf16"] < ceiling["fp32"]:
        why = (
            f"bf16 is left out: matrix products run at {ceiling['bf16']:.0f} GFLOP/s in it, "
            f"at {ceiling['fp32']:.0f} in fp32"
        )
        wanted.remove("bf16")
        if not wanted:
            raise EnvironmentFault(f"{why}; ask for --precision fp32")
        print(why, end="\n\n")
    return wanted


def machine_facts(where: record.Record) -> str:
    """One Markdown paragraph: processor or GPU, threads, versions, load, ceilings."""
    parts = [
        where["gpu"] or where["processor"],
        f"{where['threads']} of {where['cpus']} CPU threads",
        f"load {where['load']:.1f} at the start",
        f"Python {where['python']}",
        f"torch {where['torch']}",
        *(
            f"{value:.0f} GFLOP/s {name} matrix products"
            for name, value in where["ceiling"].items()
        ),
    ]
    return "; ".join(parts) + "."


def _matmul_rate(device: torch.device, kind: torch.dtype, size: int, clock: Clock) -> float:
    a, b = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
    ways: list[Callable[[], object]] = [lambda: a @ b]
    if device.type == "cpu" and kind == torch.float32 and torch.backends.mkldnn.is_available():
        blocked = a.to_mkldnn()
        ways.append(lambda: torch.nn.functional.linear(blocked, b))
    return max(2 * size**3 / _fastest(way, device, clock) / 1e9 for way in ways)


def _fastest(way: Callable[[], object], device: torch.device, clock: Clock) -> float:
    """Seconds of the fastest call within `CEILING_SECONDS` of calls."""
    way()
    finish(device)
    best, end = float("inf"), time.monotonic() + CEILING_SECONDS
    while time.monotonic() < end:
        start = clock()
        way()
        finish(device)
        best = min(best, clock() - start)
    return best
