"""Memory and GPUs of this machine, which limit its jobs unless `--resources` says otherwise."""

import os
import re
import subprocess
from importlib import metadata
from itertools import takewhile
from pathlib import Path

from headcount.model.gpu_slots import SLOTS

CONTAINER = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # of cgroups' first version
)
"""Limits of a container, in bytes; `max`, or more than there is, without a limit."""


def gpus() -> list[str]:
    """Return the GPUs that this process may use, as CUDA names them, or none if torch uses none."""
    if metadata.version("torch").endswith("+cpu"):
        return []
    try:
        listing = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    count = sum(line.startswith("GPU ") for line in listing.stdout.splitlines())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") if count else ""
    if visible is None:
        return list(map(str, range(count)))
    # CUDA looks no further than the first name that it does not know.
    return list(takewhile(re.compile("[^-]").match, visible.split(",")))


def memory_mb() -> int:
    """Return the megabytes of memory that this machine, or this container, has."""
    limits = [path.read_text().strip() for path in CONTAINER if path.exists()]
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *(int(limit) for limit in limits if limit != "max")]) // 10**6


def slots(devices: list[str], shares: int) -> str:
    """Return `SLOTS` for so many jobs at a time on these GPUs (empty without a GPU)."""
    return ",".join(devices[number % len(devices)] for number in range(shares)) if devices else ""


def set_limits(workflow) -> None:
    """Limit the jobs of this machine together to what it has (`workflow` is Snakemake's own).

    Memory and GPUs that `--resources` names stay as they are: more shares than GPUs let several
    jobs use one. A job that asks for more than there is gets what there is.
    """
    limits, devices = workflow.global_resources, gpus()
    limits.setdefault("mem_mb", memory_mb())
    shares = limits.setdefault("gpu", len(devices)).value
    os.environ[SLOTS] = slots(devices, shares)
    if devices and not shares:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif "CUDA_VISIBLE_DEVICES" not in os.environ:
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as nvidia-smi counts them


def run_in_turn(workflow) -> None:
    """Let jobs of one group run one after the other on a cluster (`workflow` is Snakemake's own).

    A group asks for cores, memory and GPU of its largest job, and for the time of all. The profile
    gives every job the one `turn` of its group. Were it not local, the cluster would have one.
    """
    workflow.global_resources["turn"] = 1
    workflow.resource_scopes["turn"] = "local"
