"""Slots by which jobs of a machine share its GPUs."""

import os
from pathlib import Path

from headcount.base.errors import EnvironmentFault
from headcount.base.files import hold

SLOTS = "HEADCOUNT_GPU_SLOTS"
"""The devices of all slots, as in `0,1,0,1`, where two jobs share a GPU. The workflow sets it."""

FOLDER = Path(".snakemake")
_held = []  # the open file of this process: closing it would free the slot


def take_slot() -> None:
    """Take the first free slot until this process ends, and hide all GPUs but the slot's.

    Call it before torch looks for a GPU. Without `SLOTS` every GPU stays visible.
    """
    devices = [name for name in os.environ.get(SLOTS, "").split(",") if name]
    if _held or not devices:
        return
    for number, device in enumerate(devices):
        try:
            _held.append(hold(FOLDER / f"gpu{number}.lock", f"using GPU {device}"))
        except EnvironmentFault:
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = device
        return
    raise EnvironmentFault(
        f"expected a free GPU among the {len(devices)} slots of {SLOTS}, found all taken; lower "
        "train.processes, or start again when a job that holds one ends"
    )
