"""What the kept runs of each experiment took."""

from collections.abc import Iterable

from headcount.findings.cost.rules import TOTAL
from headcount.findings.report.study.kept import Kept
from headcount.findings.tables import NONE


def hours_of(kept: Kept, experiments: Iterable[str]) -> list[dict[str, str]]:
    """Kept runs, jobs, and hours of the processor and of the clock, an experiment a row.

    A dash where no processor time was recorded.
    """
    return [_row(kept, name) for name in experiments]


def _row(kept: Kept, experiment: str) -> dict[str, str]:
    total = kept.table(experiment, "cost").set_index("rule").loc[TOTAL]
    processor = total["cpu_seconds"]
    return {
        "experiment": experiment,
        "runs": str(len(kept.archives(experiment))),
        "jobs": f"{total['jobs']:.0f}",
        "processor": f"{processor / 3600:.1f}" if processor else NONE,
        "clock": f"{total['seconds'] / 3600:.1f}",
    }
