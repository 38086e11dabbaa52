"""What jobs have to do, counted in units whose time a machine can be asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

UNITS = {
    "starts": "jobs begun: Python, its packages, a model",
    "updates": "updates of training",
    "passes": "sentence pairs through the model, with the gradient of its heads",
    "forwards": "sentence pairs through the model",
    "translations": "sentences translated, many at once",
    "single": "sentences translated one at a time",
    "relevances": "sentences whose relevance is measured",
    "resamples": "translations scored by the bootstrap",
    "lines": "pairs cleaned",
    "segmented": "pairs tokenised and cut into subwords",
    "teraflops": "10^12 operations in training a layer of a classifier",
    "tables": "tables",
    "figures": "figures of three panels",
}

COLUMNS = ("rule", "job", "jobs", "alone", "rated_seconds", "seconds", *UNITS)

Units = Mapping[str, float]


@dataclass(frozen=True)
class Work:
    """Like jobs of one rule: what each of them has to do, by `UNITS`."""

    rule: str
    job: str  # what tells them from the rule's other ones, such as their pair and run
    jobs: int
    units: Units
    alone: bool = False  # nothing runs beside it


def seconds_of(units: Units, rates: Units) -> float:
    """Seconds of one job; `rates` are seconds by unit."""
    return sum(count * rates[unit] for unit, count in units.items())


def estimate_table(
    works: Iterable[Work], rates: Units, measured: Mapping[str, float]
) -> pd.DataFrame:
    """`COLUMNS`, one row for each `Work`; seconds and units are those of one job.

    `rated_seconds` are by the rates; `seconds` too, but for rules all of whose jobs have run here
    before: `measured` has the mean seconds of one of them.
    """
    rows = []
    for work in works:
        rated = seconds_of(work.units, rates)
        seconds = measured.get(work.rule, rated)
        counts = [float(work.units.get(unit, 0)) for unit in UNITS]
        rows.append([work.rule, work.job, work.jobs, work.alone, rated, seconds, *counts])
    return pd.DataFrame(rows, columns=COLUMNS)


def by_rule(table: pd.DataFrame) -> pd.DataFrame:
    """Jobs, seconds of all together and of the longest for every rule, the longest first."""
    seconds = table["seconds"] * table["jobs"]
    grouped = table.assign(seconds=seconds, longest=table["seconds"]).groupby("rule", sort=False)
    sums = grouped.agg(jobs=("jobs", "sum"), seconds=("seconds", "sum"), longest=("longest", "max"))
    return sums.sort_values("seconds", ascending=False, kind="stable").reset_index()


def wall_seconds(table: pd.DataFrame, workers: int, chain: float) -> float:
    """Time on the clock with so many jobs side by side, at the least.

    `chain`: seconds of the longest chain of jobs each of which waits for the one before. Jobs that
    nothing may run beside come on top.
    """
    seconds = table["seconds"] * table["jobs"]
    alone = seconds[table["alone"]].sum()
    return max((seconds.sum() - alone) / workers, chain) + alone
