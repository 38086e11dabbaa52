"""Estimate how long the jobs of an experiment take on this machine.

    python workflow/estimate.py headmask_ro --cores 16

The estimate is coarse: a factor of three in either direction is usual. It takes the mean seconds of
jobs that have run here. Others it guesses from the sizes of the model and of the trainings.
"""

import csv
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

import yaml
from engines.phases import planned_jobs
from machine import gpus, parameters
from plan.plan import Plan

from headcount.base import command
from snakemake_logger_plugin_headcount.display import spoken

START = 4.0
"""Seconds of a job beside its work."""

SHARES: dict[str, float] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
"""Work of one job as a share of a baseline's training: middle values of archived experiments."""

TRAININGS = ("train", "gates", "scratch", "fine_tune", "subset")
GPU_RATE, CPU_RATE = 3e13, 3e10
"""Floating-point operations that a training does in a second on a GPU, and in a CPU thread."""
_BERT, _PIECES, _PAIRS = 8.5e7, 60, 4e5
"""Parameters of the encoder of BERT base, pieces of a pair, and pairs of MultiNLI."""


def machine_rate(plan: Plan, gpu_count: int) -> float:
    """Return the floating-point operations that one training does in a second."""
    train = plan.settings.train
    on_gpu = gpu_count and train.device != "cpu"
    return GPU_RATE if on_gpu else CPU_RATE * train.threads


def workers(plan: Plan, cores: int, gpu_count: int) -> int:
    """Return the number of trainings that run at a time."""
    side_by_side = cores // plan.settings.train.threads
    on_gpu = gpu_count and plan.settings.train.device != "cpu"
    return max(1, min(side_by_side, gpu_count) if on_gpu else side_by_side)


def benchmarks(experiment: str, rule: str) -> list[float]:
    """Return the seconds of the jobs of a rule that ran here."""
    seconds = []
    for path in sorted(Path("results", experiment, "benchmarks", rule).glob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            seconds += [float(row["s"]) for row in csv.DictReader(file, delimiter="\t")]
    return seconds


def seconds_by_rule(plan: Plan, rules: Iterable[str], rate: float) -> dict[str, float]:
    """Return the seconds of a job of every rule: the mean of those that ran here, or a guess."""
    known = {rule: benchmarks(plan.name, rule) for rule in set(rules)}
    return {rule: fmean(ran) if ran else _guess(plan, rule, rate) for rule, ran in known.items()}


def _guess(plan: Plan, rule: str, rate: float) -> float:
    train = plan.settings.train
    update = 6 * parameters(plan.settings) * train.batch_tokens * train.accumulate
    if rule in TRAININGS:
        named = plan.runs if rule == "train" else plan.pruning.named(rule)
        work = update * fmean([plan.pruning.updates(run) for run in named] or [0])
    elif rule in ("fine_tune_classifier", "classifier_ablation"):
        work = 6 * _BERT * _PIECES * _PAIRS * plan.settings.fine_tuning.epochs
    else:
        of_pair = train.updates / (len(plan.settings.pairs) if plan.one_model else 1)
        work = SHARES.get(rule, 0.0) * update * of_pair
    return START + work / rate


def wall_seconds(seconds: Mapping[str, float], jobs: Mapping[str, int], at_a_time: int) -> float:
    """Return seconds on the clock with so many jobs side by side."""
    whole = sum(seconds[rule] * count for rule, count in jobs.items())
    return max(whole / at_a_time, max((seconds[rule] for rule in jobs), default=0.0))


def main() -> None:
    """Print the estimate of every rule."""
    parser = command.parser(__doc__)
    parser.add_argument("experiment", help="name of a file in config/")
    for flag, count in (("--cores", os.cpu_count() or 1), ("--gpus", len(gpus()))):
        parser.add_argument(flag, type=int, default=count, help="those of this machine")
    args = parser.parse_args()
    plan = Plan(args.experiment, dry=True)
    jobs = Counter(job["rule"] for job in planned_jobs(args.experiment))
    seconds = seconds_by_rule(plan, jobs, machine_rate(plan, args.gpus))
    at_a_time = workers(plan, args.cores, args.gpus)
    wall = spoken(wall_seconds(seconds, jobs, at_a_time))
    print(f"{plan.name}: {jobs.total()} jobs, about {wall} with {at_a_time} at a time (coarse)")
    print(f"{'rule':24}{'jobs':>6}{'together':>12}{'ran here':>12}")
    for rule, number in sorted(jobs.items(), key=lambda item: -seconds[item[0]] * item[1]):
        ran = len(benchmarks(args.experiment, rule))
        print(f"{rule:24}{number:6}{spoken(seconds[rule] * number):>12}{ran:12}")


if __name__ == "__main__":
    command.run(main)
