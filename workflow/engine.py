"""Snakemake's inside, as far as we need it: its plan of jobs, and its records.

`_read_record`, `_write_record` and `_filter_incomplete_keys` are private, `finished` is wrapped:
so the version is checked, for with another one the records could be read wrongly in silence. The
test of two engines says whether a new one will do.
"""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault

TESTED = "9.27.1"

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
    from snakemake.api import (
        ConfigSettings,
        DAGSettings,
        ExecutionSettings,
        OutputSettings,
        ResourceSettings,
        SnakemakeApi,
        StorageSettings,
    )
    from snakemake.logging import logger
    from snakemake.settings.types import Quietness, SharedFSUsage
    from snakemake_interface_logger_plugins.common import LogEvent

    events = []
    logger.addFilter(lambda record: events.append(record) or True)
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            snakefile=Path("workflow/Snakefile"),
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(config={"experiment": experiment}),
            # No source cache: as in the profile, which only the command line reads.
            storage_settings=StorageSettings(
                shared_fs_usage=SharedFSUsage.all() - {SharedFSUsage.SOURCE_CACHE}
            ),
        )
        dag = workflow.dag(DAGSettings(forceall=True, force_incomplete=True))
        dag.execute_workflow(
            pseudo_executor="dryrun", execution_settings=ExecutionSettings(lock=False)
        )
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
        if getattr(event, "event", None) == LogEvent.JOB_INFO and event.output
    ]


def read_records(outputs: list[str]) -> dict[str, Record]:
    """Snakemake's records of these files: what made each, from which inputs, and when."""
    store = _store()
    found = {output: store._read_record(output) for output in sorted(outputs)}
    return {output: r.model_dump(exclude={"job_hash"}) for output, r in found.items() if r}


def is_record(value: Any) -> bool:
    """Whether a value has the form of this Snakemake's records, as `read_records` gives them."""
    from pydantic import ValidationError
    from snakemake.persistence import RECORD_FORMAT_VERSION, MetadataRecord

    try:
        record = MetadataRecord.model_validate(value)
    except ValidationError:
        return False
    return record.record_format_version == RECORD_FORMAT_VERSION and record.endtime is not None


def unfinished(outputs: list[str]) -> set[str]:
    """Which of these files a job began and did not end; Snakemake makes them again."""
    return _store()._filter_incomplete_keys(outputs)


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


def recorded(outputs: list[str]) -> bool:
    """Whether Snakemake has a record of every one of these files, and is making none of them."""
    return not unfinished(outputs) and all(map(_store()._read_record, outputs))


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
