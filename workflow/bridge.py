"""Connect Snakemake, which knows the jobs, and DVC, which keeps the files.

bridge.py plan EXPERIMENT         write the jobs of each phase; check that dvc.yaml fits them
bridge.py run EXPERIMENT PHASE    build a phase, remove what no job of it makes, pack its records
"""

import os
import subprocess
import sys
from pathlib import Path

from console import listed
from engines.phases import Job, assign, declared, is_raw, plan_file, planned_jobs
from engines.records import check_version, noted, pack_file, write_pack

from headcount.base import command
from headcount.base.ending import ENGINE, die_with_parent
from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_json


def plan(experiment: str) -> None:
    """Write `results/<experiment>/plan/<phase>.json`: commands, files and code of every job."""
    jobs = planned_jobs(experiment)
    own = _own_files(jobs)
    for job in jobs:
        if files := {k: v for path in job["input"] for k, v in own.get(path, {}).items()}:
            job["own"] = files
    for name, assigned in assign(experiment, jobs).items():
        write_json(plan_file(experiment, name), assigned)


def _own_files(jobs: list[Job]) -> dict[str, dict[str, str]]:
    """Return the checksums of own files that raw data are copies of, by the copies' manifest."""
    own = {}
    for job in filter(is_raw, jobs):
        paths = filter(Path.is_file, map(Path, job["input"]))
        own |= dict.fromkeys(job["output"], {path.as_posix(): sha256(path) for path in paths})
    return own


def run(experiment: str, phase: str) -> None:
    """Build the files of a phase, remove all others from its folders, and pack the records."""
    path = plan_file(experiment, phase)
    if not path.exists():
        raise UserError(f"{path}: no plan; run: python workflow/bridge.py plan {experiment}")
    outputs = sorted(output for job in read_json(path) for output in job["output"])
    others = _others(experiment, phase, set(outputs))
    own = [str(path) for path in others if not (noted(str(path)) or ".part-" in path.name)]
    if own:
        raise UserError(
            f"{len(own)} file(s) among the results of phase {phase} that no job wrote:\n"
            f"  {listed(own)}\nNothing was run or removed. Move them elsewhere: a phase keeps only "
            "what its jobs make, so they would be removed"
        )
    if outputs:  # without targets Snakemake would build everything
        _build(experiment, outputs)
    for path in _others(experiment, phase, set(outputs)):
        print(f"removing {path}, which no job makes any more")
        path.unlink()
    write_pack(pack_file(experiment, phase), outputs)


def _build(experiment: str, outputs: list[str]) -> None:
    """Run Snakemake, and leave with its exit code if it fails."""
    target = ["--cores", "all", *outputs, "--config", f"experiment={experiment}"]
    # Snakemake is no job of DVC's, and its jobs would look for DVC as their parent.
    variables = {name: value for name, value in os.environ.items() if name != ENGINE}
    snakemake = [sys.executable, "-m", "snakemake", *target]
    done = subprocess.run(snakemake, preexec_fn=die_with_parent, env=variables)
    if done.returncode:
        sys.exit(done.returncode)


def _others(experiment: str, phase: str, outputs: set[str]) -> list[Path]:
    """Return files in the phase's folders that no job makes, such as those left by a seed."""
    roots = [root for root in map(Path, declared(experiment)[phase].writes) if not root.suffix]
    for root in roots:
        root.mkdir(parents=True, exist_ok=True)  # DVC wants the folder of an empty phase too
    files = sorted(path for root in roots for path in root.rglob("*") if path.is_file())
    return [path for path in files if str(path) not in outputs]


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
