"""Gates: closed forms against draws, the figure's point masses, densities, test time."""

import math

import numpy as np
import pytest

from headcount.base.hard_concrete import HardConcrete

CODE = HardConcrete(0.33, -0.1, 1.1)
UNEVEN = HardConcrete(0.6, -0.2, 1.5)  # no symmetry, so that no two shifts are alike


def draw(family, log_alpha, count, seed=1):
    uniform = np.random.default_rng(seed).uniform(1e-12, 1 - 1e-12, count)
    noise = np.log(uniform / (1 - uniform))
    concrete = 1 / (1 + np.exp(-(noise + log_alpha) / family.temperature))
    return np.clip(concrete * (family.high - family.low) + family.low, 0, 1)


@pytest.mark.parametrize("family", [CODE, UNEVEN])
@pytest.mark.parametrize("log_alpha", [-1.7, 0.3, 2.0])
def test_draws_agree_with_the_closed_forms(family, log_alpha):
    count = 200_000
    gates = draw(family, log_alpha, count)
    for share, p in (
        ((gates == 0).mean(), float(family.p_zero(log_alpha))),
        ((gates == 1).mean(), float(family.p_one(log_alpha))),
        ((gates != 0).mean(), float(family.p_open(log_alpha))),
    ):
        # 4.5 standard deviations of a share; one in 150,000 is further off.
        assert abs(share - p) < 4.5 * math.sqrt(p * (1 - p) / count)
    # The mean: P(1) · 1 + P(0) · 0 + the density's part, by the midpoint rule.
    points = (np.arange(20_000) + 0.5) / 20_000
    mean = float(family.p_one(log_alpha)) + np.mean(points * family.hard_density(points, log_alpha))
    # A gate lies in [0, 1], so that its standard deviation is at most 1/2.
    assert abs(gates.mean() - mean) < 4.5 * 0.5 / math.sqrt(count)


def test_point_masses_by_hand():
    # UNEVEN: ln(0.2 / 1.5) · 0.6 = −1.20894; ln(1.2 / 0.5) · 0.6 = 0.52528.
    assert UNEVEN.zero_shift == pytest.approx(-1.20894, abs=1e-5)
    assert UNEVEN.one_shift == pytest.approx(0.52528, abs=1e-5)
    # At log α = 0.3: sigmoid(−1.50894) and sigmoid(−0.22528).
    assert UNEVEN.p_zero(0.3) == pytest.approx(0.18109, abs=1e-5)
    assert UNEVEN.p_one(0.3) == pytest.approx(0.44392, abs=1e-5)
    assert UNEVEN.p_open(0.3) == pytest.approx(0.81891, abs=1e-5)


def test_point_masses_printed_in_voitas_figure_6():
    # Drawn with τ = 0.5: ±0.5 · ln 11 = ±1.19895; sigmoid(−1.199) = 0.2317, sigmoid(−3.199) =
    # 0.0392, sigmoid(0.801) = 0.6902, sigmoid(1.801) = 0.8583, sigmoid(−4.199) = 0.0148.
    drawn = HardConcrete(0.5, -0.1, 1.1)
    printed = {0.0: (0.23, 0.23), 2.0: (0.04, 0.69), -3.0: (0.86, 0.01)}
    for log_alpha, masses in printed.items():
        found = float(drawn.p_zero(log_alpha)), float(drawn.p_one(log_alpha))
        assert tuple(round(p, 2) for p in found) == masses


def test_concrete_density_by_hand():
    # At s = 1/2, logit 0: sigmoid(0)² · τ / (1/4) = τ for log α = 0.
    assert float(CODE.concrete_density(0.5, 0.0)) == pytest.approx(0.33)
    # A gate of 1/2 is s = 1/2 for a symmetric stretch, 1.2 wide.
    assert float(CODE.hard_density(0.5, 0.0)) == pytest.approx(0.33 / 1.2)


def test_f40_gates_at_test_time():
    assert CODE.at_test(np.array([-3, -1e-6, 1e-6, 3])).tolist() == [0, 0, 1, 1]
    # An uneven stretch turns at (zero_shift + one_shift) / 2 = −0.34183.
    assert UNEVEN.at_test(np.array([-0.35, -0.34])).tolist() == [0, 1]
