"""Between Snakemake, which knows the jobs, and DVC, which keeps the files.

bridge.py plan EXPERIMENT         write down the jobs of each phase; check that dvc.yaml fits them
bridge.py run EXPERIMENT PHASE    build a phase, remove what no job of it makes, pack its records
"""

import os
import subprocess
import sys
from pathlib import Path

import contents
from engine import Job, check_version, planned_jobs
from leaving import listed
from packed import freshen, pack, write_changed
from phases import SHARED, assign, check_made, declared, plan_file

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256


def plan(experiment: str) -> None:
    """Write `results/<experiment>/plan/<phase>.json`: commands, files and code of every job."""
    jobs = planned_jobs(experiment)
    phases = declared(experiment)
    check_made(jobs, phases)
    own = _own_files(jobs)
    for name, found in assign(experiment, jobs, phases).items():
        told = [job | _own(job, own) for job in found]
        write_changed(plan_file(experiment, name), told)


def _own_files(jobs: list[Job]) -> dict[str, dict[str, str]]:
    """Checksums of the files of one's own that raw data are copies of, by the copies' manifest.

    Raw data are of no phase, and DVC does not know of them: it sees a change of such a file by the
    jobs that read the copies.
    """
    read: dict[str, dict[str, str]] = {}
    for job in jobs:
        if all(path.startswith(SHARED) for path in job["output"]):
            paths = filter(Path.is_file, map(Path, job["input"]))
            found = {path.as_posix(): sha256(path) for path in paths}
            read |= dict.fromkeys(job["output"], found)
    return read


def _own(job: Job, read: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """What a job's plan says of files of one's own; nothing where it goes by none."""
    found = {k: v for path in job["input"] for k, v in read.get(path, {}).items()}
    return {"own": found} if found else {}


def run(experiment: str, phase: str) -> None:
    """Build the files of a phase; leave in its folders those and nothing else; pack the records."""
    path = plan_file(experiment, phase)
    if not path.exists():
        raise UserError(f"{path}: no plan; run: python workflow/bridge.py plan {experiment}")
    outputs = sorted(output for job in read_json(path) for output in job["output"])
    _check_swept(experiment, phase, set(outputs))
    freshen(outputs)
    if outputs:  # without targets Snakemake would build everything
        target = ["--cores", "all", *outputs, "--config", f"experiment={experiment}"]
        snakemake = [sys.executable, "-m", "snakemake", *target]
        # It is no job of DVC's, and what it starts would look for DVC as its parent.
        told = {name: value for name, value in os.environ.items() if name != command.ENGINE}
        done = subprocess.run(snakemake, preexec_fn=command.die_with_parent, env=told)
        if done.returncode:
            sys.exit(done.returncode)
    _sweep(experiment, phase, set(outputs))
    pack(experiment, phase, outputs)


def _check_swept(experiment: str, phase: str, outputs: set[str]) -> None:
    """Raise UserError for files in the phase's folders that no job has ever written."""
    swept = _swept(experiment, phase, outputs)
    own = [str(path) for path in swept if not contents.recorded(str(path))]
    if own := [path for path in own if not Path(path).name.startswith(".part-")]:
        raise UserError(
            f"{len(own)} file(s) among the results of phase {phase} that no job wrote:\n"
            f"  {listed(own)}\nNothing was run or removed. Move them elsewhere: a phase keeps only "
            "what its jobs make, so they would be removed"
        )


def _swept(experiment: str, phase: str, outputs: set[str]) -> list[Path]:
    """Return the files in the phase's folders that no job makes, as those of a dropped seed."""
    roots = [root for root in map(Path, declared(experiment)[phase].writes) if not root.suffix]
    for root in roots:
        root.mkdir(parents=True, exist_ok=True)  # DVC wants the folder of an empty phase too
    found = sorted(path for root in roots for path in root.rglob("*") if path.is_file())
    return [path for path in found if str(path) not in outputs]


def _sweep(experiment: str, phase: str, outputs: set[str]) -> None:
    """Remove files of the phase's folders that no job makes any more."""
    for path in _swept(experiment, phase, outputs):
        print(f"removing {path}, which no job makes any more")
        path.unlink()


def main() -> None:
    """Read the arguments and plan, or run a phase."""
    parser = command.parser(__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("plan").add_argument("experiment")
    running = steps.add_parser("run")
    running.add_argument("experiment")
    running.add_argument("phase")
    args = parser.parse_args()
    check_version()
    if args.step == "plan":
        plan(args.experiment)
    else:
        run(args.experiment, args.phase)


if __name__ == "__main__":
    command.run(main)
