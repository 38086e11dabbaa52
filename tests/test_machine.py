"""What the machine can do, and what a user is told about it."""

import pytest
import torch

from headcount.runs.machine import warn_of_slow_format


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
