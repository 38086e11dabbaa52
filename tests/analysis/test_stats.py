"""Statistics over seeds and heads, against closed forms, printed tables and sums by hand."""

import itertools
import math

import numpy as np
import pytest

from headcount.analysis.stats import correlate, holm, mcnemar, paired_t, shuffled_p, wilson
from headcount.base.errors import UserError


def of_t(t: float, degrees: int) -> tuple:
    """The test of differences whose t is given: their mean is t standard errors."""
    values = np.arange(degrees + 1.0)
    values = (values - values.mean()) / values.std(ddof=1)
    return paired_t(values + t / math.sqrt(values.size))


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 7.5])
def test_p_of_one_and_two_degrees_has_a_closed_form(t):
    # One degree is the Cauchy distribution; two: P(|T| < t) = t / sqrt(2 + t²).
    assert of_t(t, 1)[2] == pytest.approx(1 - 2 / math.pi * math.atan(t), abs=1e-14)
    assert of_t(-t, 2)[2] == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-14)


def test_paired_t_by_hand():
    # Mean 2, deviations −1, 0, 1: sd 1, standard error 1/√3, t = 2√3 with 2 degrees.
    # p = 1 − t / √(2 + t²) = 1 − √(12/14); the interval reaches 4.3027 / √3 = 2.4841.
    low, high, p = paired_t(np.array([1.0, 2.0, 3.0]))
    assert p == pytest.approx(1 - math.sqrt(12 / 14))
    assert (low, high) == pytest.approx((-0.4841, 4.4841), abs=5e-5)
    assert paired_t(-np.array([1.0, 2.0, 3.0]))[2] == p
    low, high, p = paired_t(np.array([0.5, 0.5]))
    assert (low, high) == (0.5, 0.5) and math.isnan(p)
    assert paired_t(np.array([0.0, 0.0]))[2] == 1.0
    assert np.isnan(paired_t(np.array([0.5, np.nan]))).all()


def test_correlation_against_every_shuffle():
    # Products of 1 2 3 4 and 2 1 4 3: Pearson and Spearman are both 0.6. Of the 24 orders of the
    # second side as many correlate at least as strongly as do so when all are counted.
    first, second = np.array([1.0, 2, 3, 4]), np.array([2.0, 1, 4, 3])
    r, _, _, p = correlate(first, second, ranks=False)
    assert r == pytest.approx(0.6)
    sizes = [abs(np.corrcoef(first, order)[0, 1]) for order in itertools.permutations(second)]
    assert p == pytest.approx(np.mean(np.array(sizes) >= 0.6 - 1e-9), abs=0.02)
    ranked = correlate(np.exp(first), second, ranks=True)
    assert (ranked[0], ranked[3]) == pytest.approx((0.6, p))


def test_one_large_effect_makes_the_interval_wide():
    # Without the last head nothing correlates; a resample leaves it out in (29/30)^30 = 36 % of
    # cases. Fisher's z, with a standard error of 1 / √27, would end at tanh(atanh r − 0.377).
    generator = np.random.default_rng(3)
    first, second = generator.normal(size=30), generator.normal(size=30)
    first[-1] = second[-1] = 12
    r, low, *_ = correlate(first, second, ranks=False)
    assert r > 0.8 and low < min(0.35, math.tanh(math.atanh(r) - 0.377) - 0.3)


def test_correlation_at_its_ends():
    up = np.arange(6.0)
    assert correlate(up, 3 * up + 1, ranks=False)[:3] == pytest.approx((1, 1, 1))
    assert correlate(up, -(up**3), ranks=True)[0] == pytest.approx(-1)
    assert math.isnan(correlate(up, np.ones(6), ranks=False)[0])
    with pytest.raises(UserError, match="at least four heads, .* found 6 and 5"):
        correlate(up, up[:5], ranks=True)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.02, 0.5 times 4, 3, 2, 1: 0.04, 0.06, 0.04 and 0.5; none falls back.
    assert holm(np.array([0.5, 0.02, 0.01, 0.02])) == pytest.approx([0.5, 0.06, 0.04, 0.06])
    assert holm(np.array([0.9, 0.8])) == pytest.approx([1, 1]) and holm(np.array([])).size == 0


def test_statistics_are_shuffled_within_blocks():
    """Two blocks of three, in order in both: 1 of 6 · 6 orders has a sum as far above the mean.

    1 · 1 + 2 · 2 + 3 · 3 = 14 a block, 28 in all; in reverse 10 + 10 = 20, as far below the mean of
    2 · 12 = 24. So 2 of 36. In one block of six 28 is nothing special.
    """
    values, blocks = np.array([1.0, 2, 3, 1, 2, 3]), np.array([0, 0, 0, 1, 1, 1])
    assert shuffled_p(values, values, blocks, 9999) == pytest.approx(2 / 36, abs=0.01)
    apart = np.array([1.0, 2, 3, 11, 12, 13])
    assert shuffled_p(apart, apart, blocks, 9999) == pytest.approx(2 / 36, abs=0.01)
    assert shuffled_p(values, np.ones(6), blocks, 99) == 1


def test_wilson_and_mcnemar_by_hand():
    # z² = 3.8415: (8 + 1.9207) / 13.8415 = 0.7167, ± 1.96 / 13.8415 · √(1.6 + 0.9604) = 0.2266.
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=5e-5)
    assert wilson(0, 10)[0] == 0 and wilson(10, 10)[1] == 1
    assert wilson(0.3333333333 * 6, 6) == pytest.approx(wilson(2, 6))  # not cut to whole trials
    # 1 of 5 or fewer, twice: 2 · (1 + 5) / 32.
    assert mcnemar(1, 4) == mcnemar(4, 1) == pytest.approx(12 / 32)
    assert mcnemar(3, 3) == mcnemar(0, 0) == 1
