"""Subsets in training: draws, their limits, gradients by differences, K heads left, resume."""

import math

import numpy as np
import pytest
import torch
from named_runs import RUNS
from small_models import UNEVEN, make_settings

from headcount.base.addresses import SCOPES
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.training.learnt_mask import HeadSubset

GRID = make_settings(heads=UNEVEN).grid
HEADS = 17  # of UNEVEN: encoder 3 and 2, decoder 1, 3 and 2, encoder-decoder 2, 3 and 1
LENGTHS = GatesSettings(updates=8, warmup_updates=2, peak_lr=0.02, dev_interval=3)
TUNING = LENGTHS.fine_tuning(TrainSettings(batch_tokens=14))


def make_subset(name="subset-all-k5", seed=2, tuning=TUNING, **changes):
    run = RUNS[name]
    return HeadSubset(run, GRID, SubsetSettings(**changes), tuning, seed)


def choose(subset, update):
    return subset.choose(None, [], update).multiplier.detach()


@pytest.mark.parametrize("tau", [1e-8, 0.1, 1.0, 30.0])
def test_multipliers_are_at_least_0_and_their_sum_is_k(monkeypatch, tau):
    monkeypatch.setattr("headcount.training.learnt_mask.TEMPERATURE_END", tau)
    for count in (1, 5, 17):
        subset = make_subset(f"subset-all-k{count}", temperature_start=tau)
        for update in (1, 2, 9):
            drawn = choose(subset, update)
            assert float(drawn.sum()) == pytest.approx(count, rel=1e-6)
            assert (drawn >= 0).all()


def test_in_the_limit_the_k_largest_of_w_with_noise_are_drawn():
    """w + Gumbel noise −ln(−ln u), ranked; the relaxed draw of the same noise comes near."""
    uniform = torch.from_numpy(np.random.default_rng(3).uniform(0.01, 0.99, HEADS))
    subset = make_subset("subset-all-k4", temperature_start=1e-8)
    noisy = subset.learnt.detach() - torch.log(-torch.log(uniform))
    expected = torch.zeros(HEADS, dtype=torch.float64)
    expected[noisy.topk(4).indices] = 1
    assert torch.equal(subset.sample(uniform).detach(), expected)
    gaps = []
    for tau in (0.3, 0.003, 0.001):  # the fourth leads the fifth by 0.06
        soft = make_subset("subset-all-k4", temperature_start=tau).sample(uniform).detach()
        gaps.append(float((soft - expected).abs().max()))
    assert gaps[0] > 0.1 and gaps[1] < 0.02 and gaps[2] < 1e-5


@pytest.mark.parametrize("scope", ["ffn", "layers", "units"])
def test_k_units_of_another_scope_stay(scope):
    grid = make_settings(heads=UNEVEN).unit_grid
    subset = HeadSubset(RUNS[f"subset-{scope}-k3"], grid, SubsetSettings(), TUNING, 2)
    inside = [unit.kind in SCOPES[scope] for unit in grid.heads()]
    drawn, kept = choose(subset, 1).numpy(), subset.test_time().numpy()
    assert drawn[inside].sum() == pytest.approx(3, rel=1e-6) and kept[inside].sum() == 3
    assert (kept[np.logical_not(inside)] == 1).all()


def test_two_of_three_heads_by_hand():
    """r = ln 6, ln 3, 0 at τ = 1: p₁ = .6, .3, .1; p₂ ∝ 6 · .4, 3 · .7, 1 · .9: of 5.4."""
    subset = make_subset("subset-enc_self-k2", temperature_start=1.0)
    subset.gated = [0, 1, 2]
    subset.learnt = torch.tensor([6.0, 3.0, 1.0], dtype=torch.float64).log().requires_grad_()
    calm = torch.full((3,), math.exp(-1.0), dtype=torch.float64)  # −ln(−ln u) = 0
    expected = [0.6 + 2.4 / 5.4, 0.3 + 2.1 / 5.4, 0.1 + 0.9 / 5.4]
    assert subset.sample(calm).tolist() == pytest.approx(expected)


def test_the_gradient_of_a_draw_is_that_of_differences():
    subset = make_subset("subset-all-k5", temperature_start=0.7)
    uniform = torch.linspace(0.05, 0.95, HEADS, dtype=torch.float64)
    weights = torch.linspace(-1, 2, HEADS, dtype=torch.float64)
    (subset.sample(uniform) * weights).sum().backward()
    slopes = []
    for head in range(HEADS):
        ends = []
        for step in (1e-6, -1e-6):
            with torch.no_grad():
                subset.learnt[head] += step
                ends.append(float((subset.sample(uniform) * weights).sum()))
                subset.learnt[head] -= step
        slopes.append((ends[0] - ends[1]) / 2e-6)
    assert subset.learnt.grad.numpy() == pytest.approx(np.array(slopes), rel=1e-6, abs=1e-8)
    assert abs(subset.learnt.grad).max() > 0.1


def test_the_temperature_falls_geometrically_and_stays():
    """A quarter of 8 updates: 0.1 first, 0.1 · (1e-8 / 0.1)^(1/2), 1e-8 from the third on."""
    subset = make_subset()
    found = []
    for update in (1, 2, 3, 4, 8):
        subset.update = update
        found.append(subset.temperature())
    assert found == pytest.approx([0.1, math.sqrt(1e-9), 1e-8, 1e-8, 1e-8])


def test_the_k_largest_stay_equal_ones_in_flat_order():
    subset = make_subset("subset-enc_self-k2")
    with torch.no_grad():
        subset.learnt.copy_(torch.tensor([0.5, -1.0, 0.5, 0.5, 2.0]))
    assert subset.test_time().tolist() == [1, 0, 0, 0, 1, *[1] * 12]
    found = subset.at_end()
    assert found["w"][:5].tolist() == [0.5, -1, 0.5, 0.5, 2] and np.isnan(found["w"][5:]).all()
    assert found["gate"].tolist() == subset.test_time().tolist()


def test_a_head_that_only_harms_is_given_up(monkeypatch):
    """A planted loss: head 3 costs, the others are of no use; w of 3 falls below all others."""
    monkeypatch.setattr("headcount.training.learnt_mask.TEMPERATURE_END", 1.0)
    subset = make_subset("subset-all-k16", temperature_start=1.0)
    for update in range(1, 60):
        subset.choose(None, [], update)
        cost = torch.zeros(HEADS)
        cost[3] = 1.0
        subset.learn(cost)  # ∂L/∂ξ
    assert subset.test_time().tolist() == [1, 1, 1, 0, *[1] * 13]
