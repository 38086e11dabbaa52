"""Adam against torch's own class, and one step by hand."""

import subprocess
import sys

import pytest
import torch

from headcount.base.settings.train import TrainSettings
from headcount.runs.adam import Adam

SETTINGS = TrainSettings(beta1=0.8, beta2=0.97, epsilon=1e-3)


def drawn(seed, dtype=torch.float32):
    """Two weights of different shapes, and a third that never has a gradient."""
    torch.manual_seed(seed)
    shapes = ((3, 5), (7,), (2,))
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("fused", [True, False])
def test_every_bit_is_that_of_torchs_class(fused, dtype):
    ours, theirs = drawn(1, dtype), drawn(1, dtype)
    own = Adam(ours, SETTINGS, fused)
    other = torch.optim.Adam(theirs, betas=(0.8, 0.97), eps=1e-3, fused=fused, foreach=False)
    generator = torch.Generator().manual_seed(2)
    for rate in (0.1, 0.02, 0.3):
        for weights in (ours, theirs):
            generator.manual_seed(int(1000 * rate))
            for weight in weights[:2]:
                weight.grad = torch.randn(weight.shape, generator=generator, dtype=dtype)
        own.step(rate)
        other.param_groups[0]["lr"] = rate
        other.step()
    for weight, twin in zip(ours, theirs, strict=True):
        assert torch.equal(weight, twin)
    for weight, twin in zip(ours[:2], theirs[:2], strict=True):
        for name, moment in other.state[twin].items():
            assert torch.equal(own.state[weight][name], moment)


def test_first_step_by_hand_and_no_gradient_left():
    (weight, *_) = drawn(3)
    before = weight.detach().clone()
    optimiser = Adam([weight], SETTINGS, fused=True)
    weight.grad = torch.full((3, 5), -0.25)
    optimiser.step(0.5)
    # Both moments, freed of their bias, are those of the one gradient: lr · g / (|g| + ε).
    expected = before + 0.5 * 0.25 / 0.251
    torch.testing.assert_close(weight.detach(), expected, atol=1e-6, rtol=0)
    assert optimiser.state[weight]["step"] == 1
    optimiser.forget_gradients()
    assert weight.grad is None


@pytest.mark.slow
def test_an_update_loads_no_compiler():
    program = """
import sys, torch
from headcount.base.settings.train import TrainSettings
from headcount.runs.adam import Adam
weight = torch.zeros(3, requires_grad=True)
weight.grad = torch.ones(3)
Adam([weight], TrainSettings(), fused=True).step(0.1)
print(sorted(name for name in sys.modules if name in ("torch._dynamo", "torch._inductor", "sympy")))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "[]\n"), found.stderr
