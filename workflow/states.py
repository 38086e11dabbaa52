"""What trainings keep beside their states until Snakemake has their outputs on record."""

from pathlib import Path

from engine import recorded

from headcount.base.files import remove_folder
from headcount.base.finished import FinishedSet


def forget_recorded(experiment: str) -> None:
    """Remove the states of every training of an experiment that is finished and on record.

    Called in runs only, never in dry runs. What another process is making is marked as incomplete,
    and so is what an engine was making when it was killed: both stay.
    """
    for finished in sorted(Path(f"results/{experiment}/state").glob("*/*/finished")):
        outputs = [path.as_posix() for path in FinishedSet(finished).outputs()]
        if outputs and recorded(outputs):
            remove_folder(finished.parents[1])
