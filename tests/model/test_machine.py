"""What the machine can do, and what a user is told about it."""

import pytest
import torch

from headcount.base.errors import EnvironmentFault
from headcount.model import gpu_slots
from headcount.model.machine import batches_of, pick_device, pick_format

AMX = {"amx_bf16": True, "avx512_bf16": True}


@pytest.mark.parametrize(
    ("wanted", "able", "width", "taken"),
    [
        ("auto", AMX, 127, "fp32"),
        ("auto", AMX, 128, "bf16"),
        ("auto", {"amx_bf16": False, "avx512_bf16": True}, 255, "fp32"),
        ("auto", {"avx512_bf16": True}, 256, "bf16"),
        ("auto", {"bf16": True}, 1024, "fp32"),  # ARM, not measured
        ("auto", {}, 1024, "fp32"),
        ("fp32", AMX, 1024, "fp32"),
        ("bf16", {}, 16, "bf16"),
        # Of a GPU the version.
        ("auto", (8, 0), 512, "bf16"),
        ("auto", (8, 0), 511, "fp32"),
        ("auto", (7, 5), 1024, "fp32"),
    ],
)
def test_auto_takes_bf16_where_processor_and_width_gain(monkeypatch, wanted, able, width, taken):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able, raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: able)
    device = torch.device("cuda" if isinstance(able, tuple) else "cpu")
    assert pick_format(wanted, device, width) == taken


@pytest.mark.parametrize(
    ("told", "place"),
    [({}, 0), ({"LOCAL_RANK": "3"}, 3), ({"SLURM_LOCALID": "2"}, 2), ({"SLURM_LOCALID": "6"}, 2)],
)
def test_processes_that_torchrun_or_srun_starts_take_a_gpu_each(monkeypatch, told, place):
    """Of four GPUs here; a process beyond them shares one."""
    for name in ("LOCAL_RANK", "SLURM_LOCALID", gpu_slots.SLOTS):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    set_to = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", set_to.append)
    assert pick_device("auto") == torch.device("cuda", place) and set_to == [place]


def fail(fault: Exception):
    raise fault


@pytest.mark.parametrize(
    "exhaust",
    [
        lambda: torch.empty(1 << 50),
        lambda: bytearray(1 << 60),
        lambda: fail(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")),
    ],
)
def test_f38_memory_used_up_names_the_budget_and_a_smaller_one(exhaust):
    told = r"train\.batch_tokens 4097 .* 2048"
    with pytest.raises(EnvironmentFault, match=told), batches_of("train", 4097):
        exhaust()
