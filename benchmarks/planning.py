"""What a plan costs: processor time and peak memory of `snakemake -n`, by the number of jobs.

Each plan is that of one experiment with more and more seeds, before anything is made, in a process
of its own. The least of several repeats counts: others that use the machine only add to it.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import yaml

from headcount.base import command
from headcount.base.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
_READ = ("workflow", "scripts", "src", "dvc.yaml")  # by a plan, beside config


class Cost(NamedTuple):
    """What one plan took."""

    jobs: int
    seconds: float  # of processors
    megabytes: float


def project_with(folder: Path, experiment: str, **changed: object) -> Path:
    """The folder, with what a plan reads, and with other settings in place of an experiment's own.

    Raises UserError if there is no experiment of that name.
    """
    settings = ROOT / "config" / f"{experiment}.yaml"
    if not settings.is_file():
        raise UserError(f"--experiment {experiment}: expected {settings}, found no such file")
    for name in _READ:
        (folder / name).symlink_to(ROOT / name)
    (folder / "config").mkdir()
    (folder / "config/corpora.yaml").symlink_to(ROOT / "config/corpora.yaml")
    told = yaml.safe_load(settings.read_text(encoding="utf-8")) | changed
    (folder / f"config/{experiment}.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    return folder


def cost(experiment: str, seeds: int) -> Cost:
    """What the plan of an experiment with so many seeds takes, where nothing is made.

    Raises UserError with Snakemake's own words if it makes no plan.
    """
    dry_run = ["-m", "snakemake", "--dry-run", "--config", f"experiment={experiment}"]
    with tempfile.TemporaryDirectory() as name:
        folder = project_with(Path(name), experiment, seeds=[*range(1, seeds + 1)])
        with (folder / "printed").open("w") as printed:
            process = subprocess.Popen(
                [sys.executable, *dry_run], cwd=folder, stdout=printed, stderr=subprocess.STDOUT
            )
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        words = (folder / "printed").read_text()
    total = re.search(r"^total +(\d+)$", words, re.MULTILINE)
    if process.returncode or not total:
        raise UserError(f"expected a plan of {experiment}, found:\n{words[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(int(total[1]), used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 1e6)


def main() -> None:
    """Print a table with a row for each number of seeds."""
    args = _parser().parse_args()
    print("| seeds | jobs | CPU s | MB |\n|--:|--:|--:|--:|")
    for seeds in args.seeds:
        costs = [cost(args.experiment, seeds) for _ in range(args.repeats)]
        least = min(costs, key=lambda each: each.seconds)
        print(f"| {seeds} | {least.jobs:,} | {least.seconds:.1f} | {least.megabytes:.0f} |")


def _parser() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    parser.add_argument("--experiment", default="quickstart", help="whose plan")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 7, 18, 75], help="how many")
    parser.add_argument("--repeats", type=int, default=3, help="plans of each size")
    return parser


if __name__ == "__main__":
    command.run(main)
