"""What of a run is done, and how long the rest will take."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from threading import Lock


@dataclass(frozen=True)
class Job:
    """A job as the workflow knows it before it begins."""

    phase: str
    rule: str
    share: float | None  # of what the run was given, while it runs; None: no limit is known


@dataclass(frozen=True)
class Planned:
    """A run as the workflow knows it before it begins."""

    jobs: Mapping[int, Job]  # by Snakemake's number, in the order of their phases
    seconds: Mapping[str, float]  # of a job of a rule, recorded or estimated; not of every rule


@dataclass(frozen=True)
class Left:
    """What is still to do."""

    seconds: float  # of the jobs whose rule is known
    unknown: int  # jobs of rules of which no job has run, and nothing is estimated


class Progress:
    """Counts jobs; several threads may ask. Times are seconds since 1970."""

    def __init__(self, planned: Planned):
        """Nothing has begun."""
        self._planned = planned
        self._lock = Lock()
        self._begun: dict[int, float] = {}
        self._took: dict[int, float] = {}

    def begin(self, number: int, now: float) -> None:
        """A job begins, perhaps once more."""
        with self._lock:
            self._begun[number] = now

    def end(self, number: int, now: float, done: bool) -> float:
        """A job ends, done or failed; returns its seconds."""
        with self._lock:
            took = now - self._begun.pop(number, now)
            if done:
                self._took[number] = took
            return took

    def running(self, now: float) -> dict[int, float]:
        """Seconds so far of each job that runs, the longest first."""
        with self._lock:
            return {number: now - begun for number, begun in self._begun.items()}

    def by_phase(self) -> dict[str, tuple[int, int]]:
        """Jobs done, and all, of each phase."""
        with self._lock:
            found: dict[str, tuple[int, int]] = {}
            for number, job in self._planned.jobs.items():
                done, total = found.get(job.phase, (0, 0))
                found[job.phase] = done + (number in self._took), total + 1
            return found

    def counts(self) -> tuple[int, int]:
        """Jobs done, and all."""
        phases = self.by_phase().values()
        return sum(done for done, _ in phases), sum(total for _, total in phases)

    def left(self, now: float) -> Left | None:
        """What is to do, each job being as long as those of its rule; None without known limits.

        A job takes its share of the machine, so the rest takes the sum of seconds times shares,
        and no less than its longest job.
        """
        each, running = self._seconds(), self.running(now)
        seconds, longest, unknown = 0.0, 0.0, 0
        for number, job in self._planned.jobs.items():
            if job.share is None:
                return None
            if number not in self._took and job.rule in each:
                rest = max(each[job.rule] - running.get(number, 0.0), 0.0)
                seconds, longest = seconds + rest * job.share, max(longest, rest)
            elif number not in self._took:
                unknown += 1
        return Left(max(seconds, longest), unknown)

    def _seconds(self) -> dict[str, float]:
        """Seconds of a job of each rule: of those done here, or as known before."""
        with self._lock:
            done: dict[str, list[float]] = {}
            for number, took in self._took.items():
                if number in self._planned.jobs:
                    done.setdefault(self._planned.jobs[number].rule, []).append(took)
            return {**self._planned.seconds, **{rule: fmean(each) for rule, each in done.items()}}


def spoken(seconds: float) -> str:
    """Seconds in words, with two or three digits."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.{seconds < 10 * size:d}f} {unit}"
    return f"{seconds:.{seconds < 10:d}f} s"
