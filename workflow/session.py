"""One reading of the Snakefile: the experiment, the machine, and what is done around the jobs."""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console import experiment_name, leave_as_job, leaving, makes_nothing, submits, trusts_files
from engines.records import forget_states, note_when_finished, settle
from estimate import machine_rate, seconds_by_rule, wall_seconds, workers
from machine import JobResources, hold_folder, is_held, require_folders, run_in_turn, set_limits
from plan.jobs import complete, jobs
from plan.plan import Plan
from snakemake.io import expand
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
    """Log the report, warnings of `outputs` and decided claims, if this run made the report."""
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


class Session:
    """The experiment of one Snakemake process. Faults end it with a message and an exit code."""

    def __init__(self, workflow: Any, config: dict[str, Any]):
        """Read the experiment, and limit its jobs to what the machine has."""
        gc.set_threshold(50_000)  # nearly all that a plan makes stays
        self._workflow, self._main = workflow, workflow.is_main_process
        # Snakemake itself knows only later whether jobs will run, and where.
        submitting = workflow.resource_settings.nodes is not None and self._main and submits()
        self._cluster = workflow.remote_exec or submitting
        if self._cluster:
            run_in_turn(workflow)
        elif self._main:
            set_limits(workflow)
        self._held = is_held()
        with leaving():
            name = experiment_name(config)
            if self._main:
                require_folders(name)
            self.plan = Plan(name, makes_nothing())
        self.needs = JobResources(self.plan, self._cluster)

    @property
    def all_cores(self) -> int:
        """Cores of a job that times something: all of `--cores`, so that nothing runs beside it."""
        own = self.needs.threads("speed")
        return own if self._cluster else self._workflow.resource_settings.cores or own

    def complete(self) -> dict[str, list[str]]:
        """Complete all rules, and return the outputs of all jobs by rule."""
        every = list(jobs(self.plan, self._workflow.rules))
        outputs = {rule.name: list(map(str, rule.output)) for rule in self._workflow.rules}
        files = {
            rule.name: [] if rule.wildcard_names else outputs[rule.name]
            for rule in self._workflow.rules
        }
        for name, values in every:  # before constraints are written into the outputs
            files[name] += expand(outputs[name], **values)
        complete(self._workflow.rules, every)
        return files

    def check(self, files: Sequence[str]) -> None:
        """Leave if a file is not what its job wrote, and watch the jobs of this run."""
        if self._main:  # a job's own process on a cluster checks no files of others
            with leaving():
                note_when_finished()
                settle(self.plan.name, files, trusts_files())

    def start(self) -> None:
        """Begin a run."""
        with leaving():
            hold_folder(self._held)
        forget_states(self.plan.name)
        self.needs.warn_of_devices()
        log_jobs(self.plan, self._workflow, self._cluster)

    def end(self, shown: Sequence[str]) -> None:
        """End a run whose jobs all succeeded. `shown`: tables and figures in the report."""
        forget_states(self.plan.name)
        log_results(self.plan, self._workflow, shown)

    def fail(self, log: Sequence[str]) -> None:
        """End a run with a failed job, with that job's message and exit code."""
        forget_states(self.plan.name)
        leave_as_job(log)
