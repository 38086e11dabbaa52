"""Timing in turns, the machine's ceiling, and the table that every benchmark prints."""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from headcount.base.errors import EnvironmentFault
from headcount.deployment.speed import take_turns
from headcount.model.machine import pick_device, use_threads

Clock = Callable[[], float]  # seconds since some moment
Times = dict[str, list[float]]  # seconds of every repeat, by contender

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
CEILING_SIZE = 2048
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
        self.threads, self.repeats, self.warm_up = args.threads, args.repeats, args.warm_up
        self.device = pick_device(args.device)
        self.clock = CLOCKS[args.clock]
        self.ceiling = ceilings(self.device, self.clock)
        print(machine_facts(self.device, self.ceiling), end="\n\n")

    def measure(self, contenders: Sequence[Contender]) -> str:
        """The table of the contenders, who take turns."""
        times = alternate(
            contenders, self.repeats, self.warm_up, self.device, self.threads, self.clock
        )
        return table(contenders, times, self.ceiling, self.repeats)


def alternate(
    contenders: Sequence[Contender],
    repeats: int,
    warm_up: int,
    device: torch.device,
    threads: int,
    clock: Clock,
) -> Times:
    """Seconds of `repeats` runs of each contender, taken in turns after `warm_up` unmeasured ones.

    Torch's threads are set anew before each run: CTranslate2 changes them under its feet.
    """
    times: Times = {contender.name: [] for contender in contenders}
    for number, contender in take_turns(contenders, repeats, warm_up):
        torch.set_num_threads(threads)
        start = clock()
        contender.run()
        finish(device)
        if number > 0:
            times[contender.name].append(clock() - start)
    return times


def ratios(times: Times, ours: str) -> dict[str, list[float]]:
    """How many times as long as ours each contender took, round by round; above 1 ours is faster.

    Within a round the machine is about the same, so these move less than the seconds do.
    """
    return {
        name: [other / own for other, own in zip(seconds, times[ours], strict=True)]
        for name, seconds in times.items()
    }


def finish(device: torch.device) -> None:
    """Wait until a GPU has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def ceilings(device: torch.device, clock: Clock) -> dict[str, float]:
    """GFLOP/s of the fastest square matrix products found, by number format: `fp32`, `bf16`.

    On a CPU torch multiplies fp32 by way of its BLAS or of oneDNN; the faster one counts.
    """
    found = {"fp32": _matmul_rate(device, torch.float32, CEILING_SIZE, clock)}
    if device.type == "cpu":
        # Without the instructions for it, one large bf16 product takes half a minute.
        kinds = {"fp32": torch.float32, "bf16": torch.bfloat16}
        small = {name: _matmul_rate(device, kind, 256, clock) for name, kind in kinds.items()}
        if small["bf16"] < small["fp32"]:
            return found | {"bf16": small["bf16"]}
    return found | {"bf16": _matmul_rate(device, torch.bfloat16, CEILING_SIZE, clock)}


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


def machine_facts(device: torch.device, ceiling: dict[str, float]) -> str:
    """One Markdown paragraph: processor, threads, versions, load, ceilings."""
    parts = [
        _processor(device),
        f"{torch.get_num_threads()} of {os.cpu_count()} CPU threads",
        f"load {os.getloadavg()[0]:.1f} at the start",
        f"Python {platform.python_version()}",
        f"torch {torch.__version__}",
        *(f"{value:.0f} GFLOP/s {name} matrix products" for name, value in ceiling.items()),
    ]
    return "; ".join(parts) + "."


def table(
    contenders: Sequence[Contender], times: Times, ceiling: dict[str, float], repeats: int
) -> str:
    """Markdown table: a row for each contender, seconds over the repeats, rates at the median.

    The first contender is ours. `ceiling`: GFLOP/s by number format. `ratio` compares the seconds
    with ours round by round: above 1 ours is faster.
    """
    units = list(contenders[0].work.units)
    heads = ["", "min s", "median s", "max s", *(f"{unit}/s" for unit in units)]
    heads += ["GFLOP/s", "of ceiling", "ratio (min–max)"]
    rows = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    compared = ratios(times, contenders[0].name)
    for contender in contenders:
        seconds, against = times[contender.name], compared[contender.name]
        middle = statistics.median(seconds)
        speed = contender.work.flops / middle / 1e9
        rows.append(
            [
                contender.name,
                *(f"{value:.3f}" for value in (min(seconds), middle, max(seconds))),
                *(f"{contender.work.units[unit] / middle:.0f}" for unit in units),
                f"{speed:.1f}",
                f"{speed / ceiling[contender.precision]:.0%}",
                f"{statistics.median(against):.2f} ({min(against):.2f}–{max(against):.2f})",
            ]
        )
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, f"\n{repeats} repeats in turns; ratio: its seconds / ours."])


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


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
