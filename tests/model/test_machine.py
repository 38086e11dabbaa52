"""What the machine can do, and what a user is told about it."""

import pytest
import torch

from headcount.base.errors import EnvironmentFault
from headcount.model.machine import batches_of, warn_of_slow_format


@pytest.mark.parametrize(
    ("able", "precision", "device", "warned"),
    [
        ({"avx512_bf16": False, "amx_bf16": False}, "bf16", "cpu", True),
        ({"avx512_bf16": True, "amx_bf16": False}, "bf16", "cpu", False),
        ({"bf16": True}, "bf16", "cpu", False),
        ({}, "fp32", "cpu", False),
        ({}, "bf16", "cuda", False),
    ],
)
def test_bf16_without_the_arithmetic_for_it_is_told(
    monkeypatch, capsys, able, precision, device, warned
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    warn_of_slow_format(precision, torch.device(device))
    assert ("this CPU has no bf16 arithmetic" in capsys.readouterr().err) == warned


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
    told = r"out of memory with train\.batch_tokens 4097 \(flag --batch-tokens\); lower it, such as"
    told += " to 2048, or take a machine with more memory"
    with pytest.raises(EnvironmentFault, match=told), batches_of("train", 4097):
        exhaust()


def test_other_faults_of_a_batch_stay_what_they_are():
    with pytest.raises(RuntimeError, match="must match the size"), batches_of("train", 4097):
        torch.ones(2) + torch.ones(3)
