"""Estimate how long the jobs of an experiment take on this machine.

    python workflow/estimate.py headmask_ro --cores 16

The estimate is coarse: a factor of three in either direction is usual. It takes the seconds of jobs
that have run here, and guesses the others from the size of the model and of the trainings.
"""

import csv
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

import numpy as np
from engines.planned import planned_jobs
from machine.resources import parameters
from plan.plan import Plan

from headcount.base import command

START = 4.0
"""Seconds of a job beside its work."""

SHARES = {
    "translate": 0.02, "relevance": 0.08, "roles": 0.03, "pruned_roles": 0.1, "importance": 0.03,
    "loss_change": 0.1, "more_measures": 0.2, "masking": 0.25, "untuned_masking": 0.1,
    "ablation": 1.0, "pruning_profile": 0.5, "training_profile": 0.1, "speed": 0.1,
    "share_speed": 0.1, "importance_speed": 0.1, "classifier_ablation": 1.0,
}  # fmt: skip
"""Work of one job as a share of a baseline's training, from the experiments that were archived."""

TRAININGS = ("train", "gates", "scratch", "fine_tune", "subset")
_EFFICIENCY = 0.3  # of the rate of a large product, in training
_BERT = 8.5e7  # parameters of the encoder of BERT base
_PIECES = 60  # of a classified pair


def benchmarks(experiment: str, rule: str) -> list[float]:
    """Return the seconds of the jobs of a rule that ran here."""
    seconds = []
    for path in sorted(Path("results", experiment, "benchmarks", rule).glob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            seconds += [float(row["s"]) for row in csv.DictReader(file, delimiter="\t")]
    return seconds


def machine_rate(plan, gpus):
    return operations_per_second()


def operations_per_second(size: int = 1024) -> float:
    """Return the floating-point operations that this machine does in a second, in one product."""
    matrix = np.ones((size, size), dtype=np.float32)
    best = np.inf
    for _ in range(4):
        begun = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best


def seconds_by_rule(plan: Plan, rules: Iterable[str], rate: float) -> dict[str, float]:
    """Return the mean seconds of a job of every rule: measured here, or guessed."""
    return {rule: _measured(plan, rule) or _guess(plan, rule, rate) for rule in set(rules)}


def _measured(plan: Plan, rule: str) -> float:
    seconds = benchmarks(plan.name, rule)
    return fmean(seconds) if seconds else 0.0


def _guess(plan: Plan, rule: str, rate: float) -> float:
    settings = plan.settings
    if rule == "fine_tune_classifier":
        pairs = (settings.classifiers.train_pairs or 400_000) * settings.fine_tuning.epochs
        return START + 6 * _BERT * _PIECES * pairs / (rate * _EFFICIENCY)
    if rule not in SHARES and rule not in TRAININGS:
        return START
    train = settings.train
    of_update = 6 * parameters(settings) * train.batch_tokens * train.accumulate
    baseline = train.updates * of_update / (rate * _EFFICIENCY)
    if rule in TRAININGS:
        baseline *= _mean_updates(plan, rule) / train.updates
    return START + SHARES.get(rule, 1.0) * baseline


def _mean_updates(plan: Plan, rule: str) -> float:
    """Return the mean updates of the runs that a rule trains."""
    named = plan.runs if rule == "train" else plan.pruning.named(rule)
    updates = [plan.pruning.updates(run) for run in named]
    return fmean(updates) if updates else 0.0


def wall_seconds(seconds: Mapping[str, float], jobs: Mapping[str, int], workers: int) -> float:
    """Return seconds on the clock with so many jobs side by side."""
    whole = sum(seconds[rule] * count for rule, count in jobs.items())
    longest = max((seconds[rule] for rule in jobs), default=0.0)
    return max(whole / max(1, workers), longest)


def readable(seconds: float) -> str:
    """Return a time in the largest unit that it fills."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def main() -> None:
    """Print the estimate of every rule."""
    parser = command.parser(__doc__)
    parser.add_argument("experiment", help="name of a file in config/")
    count = os.cpu_count() or 1
    parser.add_argument("--cores", type=int, default=count, help=f"default: {count}")
    args = parser.parse_args()
    plan = Plan(args.experiment, dry=True)
    jobs = Counter(job["rule"] for job in planned_jobs(args.experiment))
    seconds = seconds_by_rule(plan, jobs, operations_per_second())
    workers = max(1, args.cores // plan.settings.train.threads)
    wall = readable(wall_seconds(seconds, jobs, workers))
    print(f"{plan.name}: {jobs.total()} jobs, about {wall} with {workers} at a time (coarse)")
    print(f"{'rule':24}{'jobs':>6}{'together':>12}{'measured':>12}")
    for rule, number in sorted(jobs.items(), key=lambda item: -seconds[item[0]] * item[1]):
        ran = len(benchmarks(args.experiment, rule))
        print(f"{rule:24}{number:6}{readable(seconds[rule] * number):>12}{ran:12}")


if __name__ == "__main__":
    command.run(main)
