"""Say what an experiment will cost here: jobs, updates, hours by rule, memory and disk.

    python workflow/estimate.py headmask_ro --cores 16 --gpus 4 --until 12h

Speeds are measured, a few seconds each. The first estimate for the same settings is kept in
results/<experiment>/benchmarks/estimate.csv; jobs that have run since count by their records.
"""

import argparse
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from statistics import fmean

import pandas as pd
from announce import keep, recorded
from classifier_work import PADDED, ClassifierWork
from engine import planned_jobs
from output_work import output_units, seconds_to_draw
from phases import assign, declared
from plan import Plan
from sizes import pairs_of, sentences_of
from work import Workload

from headcount.base import command
from headcount.estimate.rates import measure_machine
from headcount.estimate.work import (
    COLUMNS,
    Work,
    by_rule,
    estimate_table,
    seconds_of,
    wall_seconds,
)
from headcount.model.gpu_slots import SLOTS
from headcount.model.machine import use_threads

FETCHING = ("download", "fetch_classifier", "fetch_pretrained")
SMALLER = ("scratch", "fine_tune", "speed")
"""Rules whose models have lost heads: how many is not known before gates have been trained."""
_UNITS = {"min": 60, "h": 3600, "d": 86400}
_BYTES = 9  # of a subword on disk: of Multi30k's 924,048, cleaned 3.91 MB, and cut 4.54 MB


class Estimate:
    """What the jobs of one experiment take, by what was measured on this machine."""

    def __init__(self, experiment: str):
        """Measures, which takes some ten seconds."""
        begun = time.perf_counter()
        self.plan = Plan({"experiment": experiment}, [], dry=True)
        self.jobs = planned_jobs(experiment)
        os.environ.pop(SLOTS, None)  # the plan's: to measure is no job that takes one
        # Python, packages, a plan: as long as a job's own start.
        known = {"starts": time.perf_counter() - begun, "figures": seconds_to_draw()}
        self.sizes = pairs_of(self.plan)
        found = sentences_of(self.plan) if self.sizes else (None, "")
        self.sentences, self.lengths_from = found
        self.workload = Workload(self.plan, self.sizes)
        settings = self.plan.settings
        self.training = settings.train if self.sizes else settings.fine_tuning
        use_threads(self.training.threads)
        self.machine = measure_machine(settings, self.sentences, known)
        self.table = estimate_table(self._works(), self.machine.rates, self._records())

    def workers(self, cores: int, gpus: int) -> int:
        """Long jobs side by side, by their processes: each has a GPU, if there is one, or cores."""
        cuda = self.machine.device == "cuda"
        processes = self.plan.settings.train.processes if self.sizes else 1
        return max(1, (gpus if cuda else cores // self.training.threads) // processes)

    def wall(self, workers: int) -> float:
        """Seconds on the clock, at the least."""
        chains = (seconds_of(units, self.machine.rates) for units in self.workload.chains())
        return wall_seconds(self.table, workers, max(chains))

    def disk(self) -> int:
        """Bytes, about, of translation models and text, as it is cleaned and cut."""
        settings, seeds = self.plan.settings, len(self.plan.settings.seeds)
        trained = len(settings.runs) * (2 + len(settings.train.keep_updates))
        models = len(self.sizes) * seeds * (trained + len(settings.pruned))
        pairs = sum(sum(sides.values()) for sides in self.sizes.values())
        text = pairs * (self.sentences.src + self.sentences.tgt) * _BYTES
        return self.machine.parameters * 4 * models + text

    def fitting(self, budget: float, workers: int) -> Iterator[str]:
        """A line for each phase: that it fits the budget, or how many of its jobs do."""
        phases = assign(self.plan.name, self.jobs, declared(self.plan.name))
        seconds = by_rule(self.table).set_index("rule")
        each = (seconds["seconds"] / seconds["jobs"]).to_dict()
        left = budget * workers
        for name, found in phases.items():
            costs = [each.get(job["rule"], 0.0) for job in found]
            fit = int((pd.Series(costs).cumsum() <= left).sum())
            left -= sum(costs[:fit])
            yield f"{name}: {fit} of {len(found)} jobs"
            if fit < len(found):
                return

    def _works(self) -> Iterator[Work]:
        heads = self.plan.layout.run("heads").split("{")[0]
        rules = [job["rule"] for job in self.jobs if job["output"][0].startswith(heads)]
        works = list(self.workload.works(list(dict.fromkeys(rules))))
        yield from works
        known = {work.rule for work in works}
        for job in self.jobs:
            if job["rule"] not in known:  # a chapter, the report, raw text
                yield Work(job["rule"], job["rule"], 1, output_units(job, self.sizes))

    def _records(self) -> dict[str, float]:
        """Mean seconds of the jobs of each rule all of whose jobs have run with these settings.

        They have if they ran after the estimate for these settings was kept.
        """
        found: dict[str, float] = {}
        for rule, jobs in Counter(job["rule"] for job in self.jobs).items():
            seconds = recorded(self.plan, rule)
            if len(seconds) >= jobs:
                found[rule] = fmean(seconds)
        return found


def told(estimate: Estimate, cores: int, gpus: int) -> Iterator[str]:
    """The lines that a person reads."""
    workers = estimate.workers(cores, gpus)
    yield (
        f"{estimate.plan.name}: {len(estimate.jobs)} jobs, {_time(estimate.wall(workers))} at the "
        f"least with {workers} at a time on this {estimate.machine.device}"
    )
    if estimate.sentences:
        yield from _translation(estimate)
    if estimate.workload.classifiers:
        yield from _classifiers(estimate.workload.classifiers)
    planned = Counter(job["rule"] for job in estimate.jobs)
    if fetching := [rule for rule in FETCHING if rule in planned]:
        yield f"what the network takes comes on top: {', '.join(fetching)}"
    if smaller := [rule for rule in SMALLER if rule in planned]:
        yield f"at most, as if models had all their heads: {', '.join(smaller)}"
    yield f"{'rule':20}{'jobs':>6}{'together':>12}{'longest':>12}"
    for row in by_rule(estimate.table).itertuples():
        yield f"{row.rule:20}{row.jobs:6}{_time(row.seconds):>12}{_time(row.longest):>12}"


def _translation(estimate: Estimate) -> Iterator[str]:
    machine, train = estimate.machine, estimate.plan.settings.train
    updates = estimate.table["updates"] @ estimate.table["jobs"]
    tokens = updates * train.batch_tokens * train.accumulate * 2
    yield (
        f"{updates:,.0f} updates, at most {tokens:.2g} tokens; a model of "
        f"{machine.parameters:,} parameters; {machine.memory / 1e9:.1f} GB of memory where it was "
        f"measured; {estimate.disk() / 1e9:.1f} GB of models and text on disk, besides raw text"
    )
    lengths = f"{estimate.sentences.src} and {estimate.sentences.tgt} subwords"
    yield f"sentences of {lengths}, {estimate.lengths_from}"


def _classifiers(work: ClassifierWork) -> Iterator[str]:
    for name, encoder in work.encoders.items():
        known = "assumed, as of BERT base" if name in work.unknown else "as its config.json says"
        yield f"{name}: {encoder.layers} layers of width {encoder.width}, {known}"
    yield (
        f"{work.labelled['train']:,} labelled pairs of {work.length} subwords to train, "
        f"{work.lengths_from}; padded to {PADDED * work.length}, assumed"
    )


def _time(seconds: float) -> str:
    for unit, size in reversed(_UNITS.items()):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhd])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a time such as 30m, 12h or 2d, found {text!r}")
    return float(found[1]) * {unit[0]: size for unit, size in _UNITS.items()}[found[2]]


def main() -> None:
    """Measure, keep the estimate, and print it."""
    parser = command.parser(__doc__)
    parser.add_argument("experiment", help="name of a file in config/, without .yaml")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--cores", type=int, default=cores, help="processor cores to count with")
    parser.add_argument("--gpus", type=int, default=1, help="GPUs to count with, where one is here")
    parser.add_argument("--until", type=_seconds, help="say what fits a time: 30m, 12h, 2d")
    args = parser.parse_args()
    estimate = Estimate(args.experiment)
    keep(estimate.plan, COLUMNS, estimate.table.values.tolist())
    print("\n".join(told(estimate, args.cores, args.gpus)))
    if args.until:
        workers = estimate.workers(args.cores, args.gpus)
        print(f"\nin {_time(args.until)}:", *estimate.fitting(args.until, workers), sep="\n  ")


if __name__ == "__main__":
    command.run(main)
