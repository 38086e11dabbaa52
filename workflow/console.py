"""Messages of a run to a person: its jobs by phase, and the main results at its end.

The records are Snakemake's, so any of its loggers shows them; `snakemake_logger_plugin_headcount`
draws bars from them. A fault here is told, and stops no run.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine import RunJob, jobs_of_run
from estimate import operations_per_second, readable, seconds_by_rule, wall_seconds
from outputs import read_warnings
from phases import declared, phase_of
from plan import Plan
from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake.workflow import Workflow

from snakemake_logger_plugin_headcount.progress import Job, Planned

MAIN = 3
"""Decided claims that the end of a run shows: the first in the table of claims."""
_COARSE = "coarse; python workflow/estimate.py {} lists the rules"


def tell_jobs(plan: Plan, workflow: Workflow) -> None:
    """Tell how many jobs each phase has, and the logger which."""
    with _harmless():
        phases = declared(plan.name)
        by_phase: dict[str | None, list[RunJob]] = {name: [] for name in [*phases, None]}
        for job in jobs_of_run(workflow):
            by_phase[phase_of(job.output[0], phases)].append(job)
        jobs = {
            job.number: Job(phase or "other", job.rule, job.share)
            for phase, found in by_phase.items()
            for job in found
        }
        counts = Counter(job.phase for job in jobs.values())
        shares = ", ".join(f"{phase} {count}" for phase, count in counts.items())
        rules = Counter(job.rule for job in jobs.values())
        known = seconds_by_rule(plan, rules, operations_per_second())
        cores = workflow.resource_settings.cores or plan.settings.train.threads
        workers = max(1, cores // plan.settings.train.threads)
        left = readable(wall_seconds(known, rules, workers))
        words = f"{plan.name}: {len(jobs)} jobs ({shares}), about {left} with {workers} at a time"
        words += f" ({_COARSE.format(plan.name)})"
        more = {"planned": Planned(jobs, known), "quietness": Quietness.PROGRESS}
        logger.info(words, extra=more)


def tell_results(plan: Plan, workflow: Workflow, outputs: Iterable[str]) -> None:
    """Log the place of the report, warnings and decided claims, if this run made the report.

    `outputs`: names of what the report shows, such as tables/bleu.json.
    """
    with _harmless():
        page = f"{plan.layout.results}/report.html"
        if not any(page in job.output for job in jobs_of_run(workflow)):
            return
        # Imported here, since it imports pandas, for which no plan should wait.
        from headcount.analysis.report.answers import main_claims

        folder = Path(plan.layout.results)
        for warning in read_warnings(folder / name for name in outputs):
            logger.warning(f"warning: {warning}")
        lines, decided = main_claims(folder, MAIN)
        first = f"; the first {len(lines)} of {decided} decided claims:" if lines else ""
        logger.info("\n".join([f"The report: {page}{first}", *lines]))


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        logger.warning(f"warning: the console could not tell all: {fault!r}")
