"""All jobs of an experiment, as Snakemake plans them."""

from pathlib import Path
from typing import Any

from plan.params import CODE

RAW = "data/raw/"
"""Folder of raw data, which all experiments share and no phase of DVC contains."""

Job = dict[str, Any]


def planned_jobs(experiment: str) -> list[Job]:
    """Return rule, shell command, code, inputs and outputs of every job, done or not.

    A dry run of everything announces them.
    """
    from snakemake import api
    from snakemake.settings.types import Quietness

    events = []
    api.logger.addFilter(lambda record: events.append(record) or True)
    with api.SnakemakeApi(api.OutputSettings(quiet={Quietness.ALL})) as snakemake:
        # No source cache, as in the profile, which only the command line reads.
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
    return [
        {
            "rule": event.rule_name,
            "shell": event.shellcmd,
            "code": CODE[event.rule_name],
            "input": sorted(event.input),
            "output": sorted(event.output),
        }
        for event in events
        if getattr(event, "event", None) == api.LogEvent.JOB_INFO and event.output
    ]


def is_raw(job: Job) -> bool:
    """Return whether a job makes raw data."""
    return all(path.startswith(RAW) for path in job["output"])
