"""Say what an experiment will cost here: jobs, updates, hours by rule, memory and disk.

    python workflow/estimate.py headmask_ro --cores 16 --gpus 4 --until 12h

Speeds are measured, a few seconds each, and kept in results/<experiment>/benchmarks/estimate.csv;
jobs that have run in this folder count by their records.
"""

import argparse
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from announce import KEPT
from engine import planned_jobs
from phases import assign, declared
from plan import Plan
from sizes import pairs_of, sentences_of
from work import Workload

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.files import write_csv
from headcount.estimate.rates import measure_machine
from headcount.estimate.work import (
    COLUMNS,
    Work,
    by_rule,
    estimate_table,
    seconds_of,
    wall_seconds,
)
from headcount.model.machine import use_threads

UNMEASURED = ("fine_tune_classifier", "classifier_ablation")
_LETTERS = {"m": 60, "h": 3600, "d": 86400}
_BYTES = 12  # of a subword on disk: cleaned, and cut


class Estimate:
    """What the jobs of one experiment take, by what was measured on this machine."""

    def __init__(self, experiment: str):
        """Measures, which takes some ten seconds."""
        begun = time.perf_counter()
        self.plan = Plan({"experiment": experiment}, [], dry=True)
        if not self.plan.settings.pairs:
            raise UserError(
                f"{experiment} has no pairs, and what classifiers cost is not estimated; name a "
                "pair to have its part told"
            )
        self.jobs = planned_jobs(experiment)
        start = time.perf_counter() - begun  # Python, packages, a plan: as long as a job's own
        self.sizes = pairs_of(self.plan)
        self.sentences, self.lengths_from = sentences_of(self.plan)
        self.workload = Workload(self.plan, self.sizes)
        use_threads(self.plan.settings.train.threads)
        self.machine = measure_machine(self.plan.settings, self.sentences, start)
        self.table = estimate_table(self._works(), self.machine.rates, self._records())

    def workers(self, cores: int, gpus: int) -> int:
        """Long jobs side by side: one on each GPU if there is one to train on, else on cores."""
        threads = self.plan.settings.train.threads
        return max(1, gpus if self.machine.device == "cuda" else cores // threads)

    def wall(self, workers: int) -> float:
        """Seconds on the clock, at the least."""
        chain = seconds_of(self.workload.chain(), self.machine.rates)
        return wall_seconds(self.table, workers, chain)

    def disk(self) -> int:
        """Bytes, about, of models, states and text; raw text apart."""
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
        yield from self.workload.works(list(dict.fromkeys(rules)))
        known = {work.rule for work in self.workload.works(rules)}
        for job in self.jobs:
            if job["rule"] not in known:  # a chapter, the report, raw text
                exhibits = sum(path.endswith((".md", ".pdf")) for path in job["output"])
                yield Work(job["rule"], job["rule"], 1, {"starts": 1, "exhibits": exhibits})

    def _records(self) -> dict[str, float]:
        """Mean seconds of the jobs of each rule all of whose jobs have run in this folder."""
        found = {}
        for rule, jobs in Counter(job["rule"] for job in self.jobs).items():
            files = list(_folder(self.plan.name).glob(f"{rule}/*.tsv"))
            if len(files) >= jobs:
                seconds = pd.concat(pd.read_csv(file, sep="\t") for file in files)["s"]
                found[rule] = float(seconds.mean())
        return found


def told(estimate: Estimate, cores: int, gpus: int) -> Iterator[str]:
    """The lines that a person reads."""
    workers, machine = estimate.workers(cores, gpus), estimate.machine
    table, updates = estimate.table, estimate.table["updates"] @ estimate.table["jobs"]
    train = estimate.plan.settings.train
    tokens = updates * train.batch_tokens * train.accumulate * 2
    yield (
        f"{estimate.plan.name}: {len(estimate.jobs)} jobs, {_time(estimate.wall(workers))} at the "
        f"least with {workers} at a time on this {machine.device}"
    )
    yield (
        f"{updates:,.0f} updates, at most {tokens:.2g} tokens; a model of "
        f"{machine.parameters:,} parameters; {machine.memory / 1e9:.1f} GB of memory where it was "
        f"measured; {estimate.disk() / 1e9:.1f} GB on disk besides raw text"
    )
    lengths = f"{estimate.sentences.src} and {estimate.sentences.tgt} subwords"
    yield f"sentences of {lengths}, {estimate.lengths_from}"
    if left_out := [rule for rule in UNMEASURED if any(j["rule"] == rule for j in estimate.jobs)]:
        yield f"not counted, because nothing here measures them: {', '.join(left_out)}"
    yield f"{'rule':20}{'jobs':>6}{'together':>12}{'longest':>12}"
    for row in by_rule(table).itertuples():
        yield f"{row.rule:20}{row.jobs:6}{_time(row.seconds):>12}{_time(row.longest):>12}"


def _time(seconds: float) -> str:
    for letter, size in reversed(_LETTERS.items()):
        if seconds >= size:
            return f"{seconds / size:.1f} {letter}"
    return f"{seconds:.0f} s"


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhd])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a time such as 30m, 12h or 2d, found {text!r}")
    return float(found[1]) * _LETTERS[found[2]]


def _folder(experiment: str) -> Path:
    return Path("results", experiment, "benchmarks")


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
    kept = _folder(args.experiment) / KEPT
    write_csv(kept, COLUMNS, estimate.table.values.tolist())
    print("\n".join(told(estimate, args.cores, args.gpus)))
    if args.until:
        workers = estimate.workers(args.cores, args.gpus)
        print(f"\nin {_time(args.until)}:", *estimate.fitting(args.until, workers), sep="\n  ")


if __name__ == "__main__":
    command.run(main)
