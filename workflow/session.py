"""One reading of the Snakefile: the experiment, the machine, and what is done around the jobs."""

import gc
from collections.abc import Sequence
from typing import Any

from console.asked import experiment_name, makes_nothing, submits, trusts_files
from console.faults import leave_as_job, leaving
from console.messages import log_jobs, log_results
from engines.integrity import settle
from engines.records import forget_states, note_when_finished
from machine.limits import run_in_turn, set_limits
from machine.lock import hold_folder, is_held, require_folders
from machine.resources import JobResources
from plan.jobs import jobs
from plan.params import complete
from plan.plan import Plan
from snakemake.io import expand


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
        """Cores of a job that times something: all of `--cores`, so that nothing runs beside it.

        Without `--cores` (for a report, a graph), and on a cluster, as many as it uses.
        """
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
        """Leave if a file is not what its job wrote, and watch the jobs of this run.

        On a cluster every job has a process of its own, which checks no files of other jobs.
        """
        if self._main:
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
