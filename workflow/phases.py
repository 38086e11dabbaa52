"""The phases of dvc.yaml, and which of Snakemake's jobs belong to which.

A phase is a stage of dvc.yaml other than `plan`. Its outs say which files, and so which jobs,
are its own; nothing else says it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from leaving import listed

from headcount.base.errors import UserError

SHARED = "data/raw/"  # downloads, named by what makes them; of all experiments, kept by no phase


@dataclass(frozen=True)
class Phase:
    """What a phase reads and writes: files and folders."""

    name: str
    reads: list[str]
    writes: list[str]

    def owns(self, path: str) -> bool:
        """Whether a file is one of those that this phase writes."""
        return _covered(path, self.writes)

    def sees(self, path: str) -> bool:
        """Whether a file may be read in this phase."""
        return _covered(path, [SHARED.rstrip("/"), *self.reads, *self.writes])


def plan_file(experiment: str, phase: str) -> Path:
    """Where the jobs of a phase are written down."""
    return Path(f"results/{experiment}/plan/{phase}.json")


def records_file(experiment: str, phase: str) -> Path:
    """Where Snakemake's records of a phase travel."""
    return Path(f"results/{experiment}/provenance/{phase}.json")


def declared(experiment: str) -> dict[str, Phase]:
    """The phases of an experiment as dvc.yaml declares them, by name."""
    text = Path("dvc.yaml").read_text(encoding="utf-8").replace("${item}", experiment)
    stages = {name: stage["do"] for name, stage in yaml.safe_load(text)["stages"].items()}
    return {
        name: Phase(name, _paths(stage, "deps"), _paths(stage, "outs", "metrics", "plots"))
        for name, stage in stages.items()
        if name != "plan"
    }


def assign(experiment: str, jobs: list[dict], phases: dict[str, Phase]) -> dict[str, list[dict]]:
    """The jobs of each phase. Raises UserError where dvc.yaml and the rules do not fit together."""
    faults = []
    for phase in phases.values():
        for kind, path, paths in (
            ("dep", plan_file(experiment, phase.name), phase.reads),
            ("out", records_file(experiment, phase.name), phase.writes),
        ):
            faults += [f"stage {phase.name}: {kind} {path} is missing"] * (str(path) not in paths)
    assigned: dict[str, list[dict]] = {name: [] for name in phases}
    for job in sorted(jobs, key=lambda job: job["output"]):
        if not all(output.startswith(SHARED) for output in job["output"]):
            owners = [phase for phase in phases.values() if any(map(phase.owns, job["output"]))]
            faults += _job_faults(job, owners)
            if len(owners) == 1:
                assigned[owners[0].name].append(job)
    if faults:
        shown = listed(sorted(set(faults)))
        raise UserError(f"dvc.yaml does not fit the rules; mend it there:\n  {shown}")
    return assigned


def phase_of(path: str, phases: dict[str, Phase]) -> str | None:
    """Name of the phase that a file belongs to; downloads are told with the first one's."""
    if path.startswith(SHARED):
        return next(iter(phases))
    return next((name for name, phase in phases.items() if phase.owns(path)), None)


def _job_faults(job: dict, owners: list[Phase]) -> Iterator[str]:
    """Outputs of a job that no stage or several have; inputs that its own one does not have."""
    rule = f"rule {job['rule']}"
    for path in job["output"]:
        if not any(phase.owns(path) for phase in owners):
            yield f"{rule}: no stage's outs cover {path}"
    if len(owners) > 1:
        names = sorted(phase.name for phase in owners)
        yield f"{rule}: outs of several stages cover its files: {names}"
    for path in job["input"]:
        if len(owners) == 1 and not owners[0].sees(path):
            yield f"stage {owners[0].name}: no dep covers {path}, which {rule} reads"


def check_made(jobs: list[dict], phases: dict[str, Phase]) -> None:
    """Raise UserError for a file of a phase that is read and that no job makes.

    Snakemake plans no job whose own inputs are missing, and takes the files there for given. Then
    the phase would be swept clean of them.
    """
    made = {output for job in jobs for output in job["output"]}
    for job in jobs:
        for path in job["input"]:
            if path not in made and any(phase.owns(path) for phase in phases.values()):
                raise UserError(
                    f"{path}: rule {job['rule']} reads it, and no job can make it here; put your "
                    "own files where config/corpora.yaml says, then run dvc repro again"
                )


def _paths(stage: dict, *keys: str) -> list[str]:
    """Paths of a stage's entries; an entry with options is a mapping from path to options."""
    entries = [entry for key in keys for entry in stage.get(key, [])]
    return [path for entry in entries for path in (entry if isinstance(entry, dict) else [entry])]


def _covered(path: str, roots: list[str]) -> bool:
    if ".." in Path(path).parts:
        return False
    return any(path == root or path.startswith(f"{root}/") for root in roots)
