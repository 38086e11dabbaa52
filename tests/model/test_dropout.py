"""Dropout from 16-bit draws: the right share, the right scale, the same mask backwards."""

import math

import pytest
import torch

from headcount.model.kernels.small import dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.85])
def test_share_of_zeros_is_the_rate(rate):
    torch.manual_seed(1)
    count = 200_001  # not a multiple of four
    dropped = int((dropout(torch.ones(count), rate, True) == 0).sum())
    # Binomial: five standard deviations of √(n p q); rounding the rate to 2^-16 adds less than 2.
    assert abs(dropped - count * rate) < 5 * math.sqrt(count * rate * (1 - rate)) + 2


def test_neighbours_fall_independently():
    torch.manual_seed(3)
    kept = dropout(torch.ones(200_000), 0.5, True) > 0
    for distance in (1, 2, 3, 4, 8):
        both = (kept[:-distance] & kept[distance:]).float().mean().item()
        assert abs(both - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 200_000)


def test_what_stays_is_scaled_exactly():
    # A quarter is a whole number of 2^-16: what stays is multiplied by 4/3.
    torch.manual_seed(4)
    states = torch.randn(3, 5, 7)
    out = dropout(states, 0.25, True)
    assert out.shape == states.shape
    kept = out != 0
    assert 0 < kept.sum() < states.numel()
    assert torch.equal(out[kept], states[kept] * torch.tensor(4 / 3))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_sizes_that_are_no_multiple_of_four(size):
    torch.manual_seed(5)
    seen = {tuple((dropout(torch.ones(size), 0.5, True) > 0).tolist()) for _ in range(300)}
    assert len(seen) == 2**size


def test_identity_at_rate_0_and_in_evaluation():
    states = torch.randn(4, 3)
    before = torch.get_rng_state()
    assert dropout(states, 0.0, True) is states
    assert dropout(states, 0.7, False) is states
    assert torch.equal(torch.get_rng_state(), before)


def test_gradient_has_the_same_mask():
    torch.manual_seed(6)
    states = (torch.rand(9, 11) + 1).requires_grad_()  # no zeros of its own
    out = dropout(states, 0.3, True)
    out.sum().backward()
    torch.testing.assert_close(states.grad, (out / states).detach())
    assert torch.equal(states.grad == 0, out == 0)


def test_a_rate_next_to_1_stays_finite():
    assert dropout(torch.ones(1000), 0.9999999, True).isfinite().all()
