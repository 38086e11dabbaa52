"""What a run tells first: what its experiment will cost here."""

import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from plan import Plan

from headcount.base import command
from headcount.base.files import write_csv
from headcount.base.fingerprint import digest
from headcount.base.settings.names import parse_pair

WORTH = 1000
"""Updates, of all trainings, from which on measuring pays: it takes some ten seconds."""

ELSEWHERE = (
    "note: nothing is estimated, since jobs run on other machines than this; python "
    "workflow/estimate.py {} measures the one that it runs on"
)


def kept(experiment: str) -> Path:
    """The estimate of an experiment, beside the records of its jobs."""
    return Path("results", experiment, "benchmarks", "estimate.csv")


def shaping(plan: Plan) -> str:
    """Digest of what shapes the work: all settings but the title, and how much text there is."""
    named = [*plan.classifiers.corpora, *(parse_pair(p).corpus for p in plan.settings.pairs)]
    sizes = {"pairs", "length", "draw", "settings"}
    corpora = {name: plan.corpora[name].model_dump(mode="json", include=sizes) for name in named}
    return digest([plan.settings.model_dump(mode="json", exclude={"title"}), corpora])


def keep(plan: Plan, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write an estimate, unless there is one for the same settings: that stays, made earlier."""
    if not is_kept(plan):
        settings = shaping(plan)
        write_csv(kept(plan.name), ["settings", *columns], ([settings, *row] for row in rows))


def is_kept(plan: Plan) -> bool:
    """Whether the estimate that is there was made for these settings."""
    path = kept(plan.name)
    if not path.exists():
        return False
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.DictReader(file), {}).get("settings") == shaping(plan)


def expected(plan: Plan) -> dict[str, float]:
    """Mean seconds of a job of each rule, by the estimate for these settings; empty without one."""
    if not is_kept(plan):
        return {}
    jobs, seconds = Counter(), Counter()
    with kept(plan.name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            jobs[row["rule"]] += int(row["jobs"])
            seconds[row["rule"]] += int(row["jobs"]) * float(row["seconds"])
    return {rule: seconds[rule] / count for rule, count in jobs.items() if count}


def recorded(plan: Plan, rule: str) -> list[float]:
    """Seconds of the rule's jobs that have run since the estimate for these settings was kept."""
    if not is_kept(plan):
        return []
    first = kept(plan.name)
    files = first.parent.glob(f"{rule}/*.tsv")
    newer = [file for file in files if file.stat().st_mtime > first.stat().st_mtime]
    return [float(row["s"]) for file in newer for row in _rows(file)]


def _rows(benchmark: Path) -> list[dict[str, str]]:
    with benchmark.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def announce(plan: Plan, given: Mapping[str, int] | None) -> None:
    """Estimate what the experiment will cost and print it, unless that was done here before.

    `given`: cores and GPUs of this machine; None where jobs run on others, of which nothing is
    known here. An estimate for other settings goes. A fault of the estimate's is printed and stops
    nothing.
    """
    if is_kept(plan):
        return
    kept(plan.name).unlink(missing_ok=True)
    if plan.pruning.all_updates() < WORTH and not plan.classifiers.fine_tuned:
        return
    if given is None:
        print(ELSEWHERE.format(plan.name), file=sys.stderr)
        return
    asked = [word for name, count in given.items() for word in (f"--{name}", str(count))]
    estimate = [sys.executable, "workflow/estimate.py", plan.name, *asked]
    subprocess.run(estimate, stdout=sys.stderr, preexec_fn=command.die_with_parent)
