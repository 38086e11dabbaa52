"""Products by oneDNN and MKL against torch's own, and dropout from 16-bit draws."""

import math

import pytest
import torch
from torch.nn import functional

from headcount.base.settings.model import ModelSettings
from headcount.model.kernels import matmul
from headcount.model.kernels.matmul import linear, matmul_transposed, weight_gradient
from headcount.model.kernels.small import dropout
from headcount.model.layers import FeedForward

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)


@pytest.fixture
def by_onednn(monkeypatch):
    """oneDNN takes products of any size, on a processor of any kind; counts its calls."""
    calls = []
    plain = matmul._onednn

    def counted(*arguments):
        calls.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(matmul, "_ONEDNN_PAYS", True)
    monkeypatch.setattr(matmul, "LEAST", 1)
    monkeypatch.setattr(matmul, "LEAST_FORWARD", 1)
    monkeypatch.setattr(matmul, "_onednn", counted)
    return calls


def random(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# More outputs than inputs, and fewer: the weight's gradient is computed either way round.
@pytest.mark.parametrize(("k", "n"), [(5, 11), (11, 5)])
@pytest.mark.parametrize("shape", [(7,), (3, 70), (2, 32)])  # 7, 210 and 64 rows; blocks are of 64
@pytest.mark.parametrize("has_bias", [True, False])
def test_linear_and_its_gradients(by_onednn, shape, k, n, has_bias):
    given = [random(*shape, k), random(n, k, seed=2), random(n, seed=3) if has_bias else None]
    upstream = random(*shape, n, seed=4)
    found = []
    for function in (functional.linear, linear):
        leaves = [None if each is None else each.clone().requires_grad_() for each in given]
        result = function(*leaves)
        result.backward(upstream)
        found.append([result.detach(), *(each.grad for each in leaves if each is not None)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert len(by_onednn) == 3  # forward, by the inputs, by the weight


@torch.no_grad()
@pytest.mark.parametrize("shape", [(7,), (3, 70), (2, 8)])  # 7, 210 and 16 rows; blocks are of 16
def test_linear_without_a_gradient(by_onednn, shape):
    inputs, weight, bias = random(*shape, 5), random(11, 5, seed=2), random(11, seed=3)
    for own in (bias, None):
        expected = functional.linear(inputs, weight, own)
        torch.testing.assert_close(linear(inputs, weight, own), expected, rtol=1e-5, atol=1e-5)
    assert len(by_onednn) == 2


@torch.no_grad()
def test_what_is_not_a_number_stays_visible(by_onednn):
    layer = FeedForward(ModelSettings(d_model=8, heads=2, d_ff=12), 12).eval()
    layer.inner.weight[2, 1] = math.nan
    seen = []
    layer.outer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    layer(random(9, 8))
    assert seen[0].isnan().sum(0).tolist() == [0, 0, 9, *[0] * 9]


def test_matmul_without_gradients(by_onednn):
    left, right, upstream = random(70, 5), random(9, 5, seed=2), random(70, 9, seed=3)
    torch.testing.assert_close(
        matmul_transposed(left, right), left @ right.t(), rtol=1e-5, atol=1e-5
    )
    expected = upstream.t() @ left
    torch.testing.assert_close(weight_gradient(upstream, left), expected, rtol=1e-5, atol=1e-4)
    assert len(by_onednn) == 2


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
