"""Phases of an experiment: the jobs that Snakemake plans, by the outs of the stages in dvc.yaml."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import yaml
from console import listed
from plan.jobs import CODE

from headcount.base.errors import UserError

RAW = "data/raw/"
"""Folder of raw data, which all experiments share and no phase of DVC contains."""

Job = dict[str, Any]


def planned_jobs(experiment: str) -> list[Job]:
    """Return rule, shell command, code, inputs and outputs of every job, done or not."""
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


@dataclass(frozen=True)
class Phase:
    """Files and folders that a phase reads and writes."""

    name: str
    reads: list[str]
    writes: list[str]

    def owns(self, path: str) -> bool:
        """Return whether a file is an output of this phase."""
        return _covered(path, self.writes)

    def sees(self, path: str) -> bool:
        """Return whether this phase may read a file."""
        return _covered(path, [RAW.rstrip("/"), *self.reads, *self.writes])


def plan_file(experiment: str, phase: str) -> Path:
    """Return the file that lists the jobs of a phase."""
    return Path(f"results/{experiment}/plan/{phase}.json")


def declared(experiment: str) -> dict[str, Phase]:
    """Return the phases of an experiment by name, as dvc.yaml declares them."""
    text = Path("dvc.yaml").read_text(encoding="utf-8").replace("${item}", experiment)
    stages = {name: stage["do"] for name, stage in yaml.safe_load(text)["stages"].items()}
    return {
        name: Phase(name, _paths(stage, "deps"), _paths(stage, "outs", "metrics", "plots"))
        for name, stage in stages.items()
        if name != "plan"
    }


def assign(experiment: str, jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Return the jobs of every phase. Raise UserError if dvc.yaml does not fit the rules."""
    phases = declared(experiment)
    jobs = sorted((job for job in jobs if not is_raw(job)), key=itemgetter("output"))
    faults: list[str] = []
    assigned: dict[str, list[Job]] = {name: [] for name in phases}
    for job in jobs:
        owners = [phase for phase in phases.values() if any(map(phase.owns, job["output"]))]
        faults += _faults(job, owners)
        assigned[owners[0].name if owners else next(iter(phases))].append(job)
    if faults:
        shown = listed(sorted(set(faults)))
        raise UserError(f"dvc.yaml does not fit the rules; correct it there:\n  {shown}")
    _check_makers(jobs, phases.values())
    return assigned


def _faults(job: Job, owners: list[Phase]) -> Iterator[str]:
    """Yield outputs of a job that are not in one stage, and inputs that its stage lacks."""
    for path in job["output"]:
        if len(owners) != 1 or not owners[0].owns(path):
            names = [phase.name for phase in owners]
            yield f"rule {job['rule']}: expected one stage with the out {path}, found {names}"
    for path in job["input"]:
        if len(owners) == 1 and not owners[0].sees(path):
            yield f"stage {owners[0].name}: no dep contains {path}, which {job['rule']} reads"


def _check_makers(jobs: Iterable[Job], phases: Iterable[Phase]) -> None:
    """Raise UserError for an input that no job makes, and that a phase would remove."""
    # Snakemake plans no job whose own inputs are missing.
    made = {output for job in jobs for output in job["output"]}
    for job in jobs:
        for path in job["input"]:
            if path not in made and any(phase.owns(path) for phase in phases):
                raise UserError(
                    f"{path}: rule {job['rule']} reads it, and no job can make it here. Put your "
                    "own files where config/corpora.yaml says, then run dvc repro again"
                )


def _paths(stage: dict, *keys: str) -> list[str]:
    """Return the paths of a stage's entries. An entry with options is a mapping from its path."""
    entries = [entry for key in keys for entry in stage.get(key, [])]
    return [path for entry in entries for path in (entry if isinstance(entry, dict) else [entry])]


def _covered(path: str, roots: list[str]) -> bool:
    return ".." not in Path(path).parts and any(map(Path(path).is_relative_to, roots))
