"""Snakemake's inside, as far as we need it: its plan of jobs, and its records.

`_read_record`, `_write_record`, `_filter_incomplete_keys` and `_unmark_incomplete` are private,
`finished` is wrapped: so the version is checked, for with another one the records could be read
wrongly in silence. The test of two engines says whether a new one will do.
"""

import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headcount.base.errors import EnvironmentFault
from headcount.base.files import remove_folder
from headcount.store.finished import FinishedSet

TESTED = "9.27.1"
LATEST = 1e11  # seconds since 1970; no file can have a much later time

Job = dict[str, Any]
Record = dict[str, Any]


def check_version() -> None:
    """Raise EnvironmentFault unless Snakemake is the version this seam was tested with."""
    found = version("snakemake")
    if found != TESTED:
        raise EnvironmentFault(
            f"snakemake {found}: what made each result is read from Snakemake's own records, whose "
            f"form is known for {TESTED} only; pip install snakemake=={TESTED}"
        )


def planned_jobs(experiment: str) -> list[Job]:
    """Every job of an experiment, done or not: rule, shell command, code, inputs and outputs.

    They are what a dry run of everything announces.
    """
    from snakemake import api
    from snakemake.settings.types import Quietness

    events = []
    api.logger.addFilter(lambda record: events.append(record) or True)
    with api.SnakemakeApi(api.OutputSettings(quiet={Quietness.ALL})) as snakemake:
        # No source cache: as in the profile, which only the command line reads.
        shared = api.SharedFSUsage.all() - {api.SharedFSUsage.SOURCE_CACHE}
        workflow = snakemake.workflow(
            snakefile=Path("workflow/Snakefile"),
            resource_settings=api.ResourceSettings(cores=1),
            config_settings=api.ConfigSettings(config={"experiment": experiment}),
            storage_settings=api.StorageSettings(shared_fs_usage=shared),
        )
        dag = workflow.dag(api.DAGSettings(forceall=True, force_incomplete=True))
        settings = api.ExecutionSettings(lock=False)
        dag.execute_workflow(pseudo_executor="dryrun", execution_settings=settings)
        params = {rule.name: dict(rule.params.items()) for rule in workflow._workflow.rules}
    return [
        {
            "rule": event.rule_name,
            "shell": event.shellcmd,
            "code": params[event.rule_name]["code"],
            "input": sorted(event.input),
            "output": sorted(event.output),
        }
        for event in events
        if getattr(event, "event", None) == api.LogEvent.JOB_INFO and event.output
    ]


class RunJob(NamedTuple):
    """A job of the run that goes on here."""

    number: int
    rule: str
    output: list[str]
    share: float | None  # of what the run was given, while it runs; None on a cluster


def jobs_of_run(workflow) -> list[RunJob]:
    """The jobs of a run, done or not, that make files; `workflow` is Snakemake's own."""
    given = workflow.global_resources.expand_items(
        constraints={}, evaluate=None, expand_sized=False
    )
    limits = {name: limit for name, limit in given if isinstance(limit, int) and limit}
    jobs = workflow.dag.needrun_jobs(exclude_finished=False)
    return [
        RunJob(workflow.dag.jobid(job), job.rule.name, list(map(str, job.output)), share)
        for job in jobs
        if job.output
        for share in [_share(job.resources, limits)]
    ]


def _share(resources, limits: dict[str, int]) -> float | None:
    """The largest part that a job takes of any limit; None where cores have none."""
    if "_cores" not in limits or "_nodes" in limits:
        return None
    return max(min(resources.get(name, 0) / limit, 1) for name, limit in limits.items())


def let_loggers_catch_up(workflow) -> None:
    """Wait until loggers that have a thread of their own have shown everything, or two seconds."""
    listener, end = workflow.logger_manager.queue_listener, time.monotonic() + 2
    while listener and listener.queue.unfinished_tasks and time.monotonic() < end:
        time.sleep(0.01)


def read_records(outputs: list[str]) -> dict[str, Record]:
    """Snakemake's records of these files: what made each, from which inputs, and when."""
    store = _store()
    found = {output: store._read_record(output) for output in sorted(outputs)}
    return {output: r.model_dump(exclude={"job_hash"}) for output, r in found.items() if r}


def parse_records(text: bytes) -> dict[str, Record]:
    """Records as `read_records` gives them, each with the SHA-256 of its file, from JSON.

    Raises ValueError, which says what it is, for what is none or comes from another version.
    """
    from pydantic import Field, TypeAdapter, ValidationError
    from snakemake.persistence import RECORD_FORMAT_VERSION, MetadataRecord

    class Packed(MetadataRecord):
        record_format_version: Literal[RECORD_FORMAT_VERSION]
        endtime: float = Field(gt=-LATEST, lt=LATEST)
        sha256: str = Field(pattern="^[0-9a-f]{64}$")

    try:
        found = TypeAdapter(dict[str, Packed]).validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        if fault["loc"]:
            words = "damaged, or of another version of this workflow"
            raise ValueError(f"{fault['loc'][0]}: {words}") from error
        raise ValueError(fault["msg"]) from error
    return {output: record.model_dump(exclude={"job_hash"}) for output, record in found.items()}


def unfinished(outputs: list[str]) -> set[str]:
    """Which of these files a job began and did not end; Snakemake makes them again."""
    return _store()._filter_incomplete_keys(outputs)


def mark_whole(outputs: list[str]) -> None:
    """Forget that a job began these files here and did not end: they came whole from elsewhere."""
    store = _store()
    for output in outputs:
        store._unmark_incomplete(output)


def call_before_recording(note: Callable[[str], None]) -> None:
    """Have each output of a job noted before Snakemake records that the job is done.

    A run killed between the two leaves the job unfinished, so it is done, and noted, again.
    """
    from snakemake.persistence.file import FilePersistence

    check_version()
    plain = FilePersistence.finished

    async def finished(store, job) -> None:
        for output in job.output:
            note(output)
        await plain(store, job)

    FilePersistence.finished = finished


def forget_recorded(experiment: str) -> None:
    """Remove the states of every training of an experiment that is finished and on record.

    Also those of other settings of the same run and seed, which nothing else would ever remove.

    Called in runs only, never in dry runs. What another process is making is marked as incomplete,
    and so is what an engine was making when it was killed: both stay. So does what belongs to
    outputs that are gone: a job that failed is on record, too, and Snakemake removes its outputs.
    """
    for finished in sorted(Path(f"results/{experiment}/state").glob("*/*/finished")):
        outputs = [path.as_posix() for path in FinishedSet(finished).outputs()]
        here = all(map(os.path.isfile, outputs))
        on_record = all(map(_store()._read_record, outputs))
        if outputs and here and on_record and not unfinished(outputs):
            remove_folder(finished.parents[1])


def write_records(records: dict[str, Record]) -> None:
    """Give Snakemake the records of files that came from elsewhere."""
    from snakemake.persistence import MetadataRecord

    store = _store()
    for output, record in records.items():
        store._write_record(output, MetadataRecord(**record))


def _store():
    from snakemake.persistence.file import FilePersistence

    check_version()
    return FilePersistence(nolock=True)
