"""What one machine has for its jobs, memory and GPUs, unless `--resources` says how much.

And what a job of a cluster has of which several go together.
"""

import os
import subprocess
from importlib import metadata
from itertools import takewhile
from pathlib import Path

from headcount.model.gpu_slots import SLOTS

CONTAINER = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # of cgroups' first version
)
"""What a container may use, in bytes; `max`, or more than there is, where that is all."""


def gpus() -> list[str]:
    """The GPUs that are shown to this process, as CUDA names them; none where torch uses none."""
    if metadata.version("torch").endswith("+cpu"):
        return []
    try:
        told = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    found = [line for line in told.stdout.splitlines() if line.startswith("GPU ")]
    shown = os.environ.get("CUDA_VISIBLE_DEVICES") if found else ""
    if shown is None:
        return [str(number) for number in range(len(found))]
    return list(takewhile(_is_device, shown.split(",")))


def _is_device(name: str) -> bool:
    """Whether CUDA shows a GPU for it; it looks no further than the first that it does not know."""
    return name != "" and not name.startswith("-")


def memory_mb() -> int:
    """Megabytes of memory that this machine, or this container, has."""
    told = [path.read_text().strip() for path in CONTAINER if path.exists()]
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *(int(limit) for limit in told if limit != "max")]) // 10**6


def slots(devices: list[str], shares: int) -> str:
    """`SLOTS` for so many jobs at a time on these GPUs, which take turns; empty without one."""
    return ",".join(devices[number % len(devices)] for number in range(shares)) if devices else ""


def set_limits(workflow) -> None:
    """Limit the jobs of this machine together to what it has; `workflow` is Snakemake's own.

    Memory and GPUs that `--resources` names stay as they are: more shares than GPUs let several
    jobs use one. A job that asks for more than there is gets what there is.
    """
    limits, devices = workflow.global_resources, gpus()
    limits.setdefault("mem_mb", memory_mb())
    shares = limits.setdefault("gpu", len(devices)).value
    os.environ[SLOTS] = slots(devices, shares)
    if devices and not shares:  # there are some, of which nothing is given
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif "CUDA_VISIBLE_DEVICES" not in os.environ:
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as nvidia-smi counts them


def given(workflow) -> dict[str, int]:
    """Cores and GPUs, as far as there are any, that the jobs of this machine are given together."""
    found = {"cores": workflow.resource_settings.cores}
    found["gpus"] = workflow.global_resources["gpu"].value
    return {name: count for name, count in found.items() if count}


def run_in_turn(workflow) -> None:
    """Let jobs that go together to a cluster run one after the other; `workflow` is Snakemake's.

    Together they ask for the cores, the memory and the GPU of the largest, and for the time of all.
    The profile gives each of them the one `turn` of its group; were it not local, there would be
    one in the whole cluster.
    """
    workflow.global_resources["turn"] = 1
    workflow.resource_scopes["turn"] = "local"
