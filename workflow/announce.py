"""What a run tells first: what its experiment will cost here."""

import subprocess
import sys
from pathlib import Path

from headcount.base import command

KEPT = "estimate.csv"
"""The estimate of an experiment, beside the records of its jobs."""
WORTH = 1000
"""Updates, of all trainings, from which on measuring pays: it takes some ten seconds."""


def announce(experiment: str, updates: int, cores: int | None) -> None:
    """Estimate what the experiment will cost and print it, unless that was done here before.

    A fault of the estimate's is printed and stops nothing.
    """
    if updates < WORTH or Path("results", experiment, "benchmarks", KEPT).exists():
        return
    asked = ["--cores", str(cores)] if cores else []
    estimate = [sys.executable, "workflow/estimate.py", experiment, *asked]
    subprocess.run(estimate, stdout=sys.stderr, preexec_fn=command.die_with_parent)
