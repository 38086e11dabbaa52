"""One GPU, or a share of one, for each job of a machine: that of the first slot that is free."""

import os
from pathlib import Path

from headcount.base.errors import EnvironmentFault
from headcount.base.files import hold

SLOTS = "HEADCOUNT_GPU_SLOTS"
"""The device of each slot, as in `0,1,0,1`: jobs share a GPU that is there several times. The
workflow sets it; a script by hand, or a cluster's job, has the devices that it is shown."""

FOLDER = Path(".snakemake")
_held = []  # the open file of this process: closing it would free the slot


def take_slot() -> None:
    """Show this process no other GPU than that of its slot, which is its own until it ends.

    Without `SLOTS` every GPU stays visible. To be called before torch looks for a GPU. Raises
    EnvironmentFault if no slot is free.
    """
    devices = [each for each in os.environ.get(SLOTS, "").split(",") if each]
    if _held or not devices:
        return
    for number, device in enumerate(devices):
        try:
            _held.append(hold(FOLDER / f"gpu{number}.lock", f"using GPU {device}"))
        except EnvironmentFault:
            continue
        os.environ["CUDA_VISIBLE_DEVICES"] = device
        return
    several = "LOCAL_RANK" in os.environ  # a process beside others of one training
    remedy = "lower train.processes" if several else "start again when a job that holds one ends"
    raise EnvironmentFault(
        f"expected a free GPU among the {len(devices)} slots of {SLOTS}, found all taken; {remedy}"
    )
