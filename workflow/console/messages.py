"""Messages of a run to a person: its jobs at the start, and the main results at its end.

Snakemake's loggers show them; `snakemake_logger_plugin_headcount` computes the time left from them.
A fault here becomes a warning, and stops no run.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from estimate import machine_rate, seconds_by_rule, wall_seconds, workers
from plan.plan import Plan
from snakemake.logging import logger
from snakemake.settings.enums import Quietness

from headcount.base.files import read_json
from snakemake_logger_plugin_headcount.display import spoken

MAIN = 3
"""Decided claims that the end of a run shows: the first in the table of claims."""


def log_jobs(plan: Plan, workflow: Any, cluster: bool) -> None:
    """Log the number of jobs and, except on a cluster, a coarse estimate of their time."""
    with _harmless():
        jobs = Counter(job.rule.name for job in _jobs(workflow))
        text, seconds = f"{plan.name}: {jobs.total()} jobs", {}
        if not cluster:
            cores = workflow.resource_settings.cores or 1
            gpus = workflow.global_resources["gpu"].value
            seconds = seconds_by_rule(plan, jobs, machine_rate(plan, gpus))
            at_a_time = workers(plan, cores, gpus)
            wall = spoken(wall_seconds(seconds, jobs, at_a_time))
            text += f", about {wall} with {at_a_time} at a time (coarse)"
        more = {"jobs": jobs, "seconds": seconds, "quietness": Quietness.PROGRESS}
        logger.info(text, extra=more)


def log_results(plan: Plan, workflow: Any, outputs: Iterable[str]) -> None:
    """Log the place of the report, warnings and decided claims, if this run made the report.

    `outputs`: names of what the report shows, such as tables/bleu.json.
    """
    with _harmless():
        page = f"{plan.layout.results}/report.html"
        if not any(page in job.output for job in _jobs(workflow)):
            return
        # Imported here, since it imports pandas, for which no plan should wait.
        from headcount.analysis.report.answers import decided_claims

        folder = Path(plan.layout.results)
        for warning in read_warnings(folder / name for name in outputs):
            logger.warning(f"warning: {warning}")
        claims = decided_claims(folder)
        count = f"the first {MAIN} of {len(claims)}" if len(claims) > MAIN else "the"
        first = f"; {count} decided claims:" if claims else ""
        logger.info("\n".join([f"The report: {page}{first}", *claims[:MAIN]]))


def read_warnings(files: Iterable[Path]) -> list[str]:
    """Return the warnings in the JSON files of tables and figures, each once."""
    warnings = (text for file in files for text in read_json(file).get("warnings", []))
    return list(dict.fromkeys(warnings))


def _jobs(workflow: Any) -> Iterator:
    """Return the jobs of this run that make files, done or not. Tested with Snakemake 9.27.1."""
    return (job for job in workflow.dag.needrun_jobs(exclude_finished=False) if job.output)


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        logger.warning(f"warning: a message of this run failed: {fault!r}")
