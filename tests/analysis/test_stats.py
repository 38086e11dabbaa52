"""Statistics over seeds, heads, draws and repeats, against closed forms and sums by hand."""

import itertools
import math
from math import nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.analysis.scores import BOOTSTRAP, DRAWS, SEEDS, over_seeds
from headcount.analysis.stats import (
    correlate,
    holm,
    mcnemar,
    paired_t,
    shuffled_p,
    speedups,
    wilson,
)
from headcount.analysis.tables.michel.speed import importance_time, speed
from headcount.base.errors import UserError

COLUMNS = ["run", "seed", "draw", "score", "delta", "delta_low", "delta_high"]
MANY = [("b", 1, None, 1, 0, 0, 0), ("b", 2, None, 2, 0, 0, 0), (None, 1, None, 4, 0, 0, 0)]


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


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.randoms())
def test_holm_keeps_order_and_never_lowers_p(p_values, random):
    adjusted = holm(np.array(p_values))
    assert (adjusted >= p_values).all() and (adjusted <= 1).all()
    smallest = int(np.argmin(p_values))
    assert adjusted[smallest] == min(1, len(p_values) * min(p_values))  # Bonferroni's
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert (np.diff(adjusted[order]) >= 0).all()
    random.shuffle(order)
    assert (holm(np.array(p_values)[order]) == adjusted[order]).all()


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


def points(*rows, **options):
    return over_seeds(pd.DataFrame(rows, columns=COLUMNS), ["run"], **options)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", 1, None, 10, -1, -2, 0), ("a", 2, None, 14, -1, -2, 0)],
         (12, 12 - 8**0.5, 12 + 8**0.5, SEEDS, 2)),
        ([("a", 1, None, 10, -2, -3, -0.5)], (10, 9, 11.5, BOOTSTRAP, 1)),  # the control has 12
        ([("a", 1, 1, 1, 0, 0, 0), ("a", 1, 2, 3, 0, 0, 0), ("a", 2, 1, 8, 0, 0, 0)],
         (5, 1, 8, DRAWS, 2)),  # of 2 and 8: a seed counts once
        ([("a", 1, None, 10, nan, nan, nan)], (10, nan, nan, None, 1)),  # the control itself
    ],
)  # fmt: skip
def test_a_mean_has_the_interval_of_its_seeds_draws_or_sentences(rows, expected):
    (point,) = points(*rows).to_dict("records")
    numbers = [point[name] for name in ("score", "low", "high")]
    assert numbers == pytest.approx(expected[:3], nan_ok=True)
    assert (point["spread"] if pd.notna(point["spread"]) else None) == expected[3]
    assert point["seeds"] == expected[4]


def test_one_draw_other_values_and_missing_keys():
    one = points(("a", 1, 1, 4, -1, -2, 0), ("b", 1, None, 4, -1, -2, 0), draw="draw")
    assert one[["spread", "low"]].to_numpy().tolist() == [[DRAWS, 4], [BOOTSTRAP, 3]]
    (delta,) = points(("a", 1, None, 10, -2, -3, -0.5), value="delta").to_dict("records")
    assert (delta["delta"], delta["low"], delta["high"]) == (-2, -3, -0.5)
    rows = pd.DataFrame(MANY, columns=COLUMNS).assign(heads_left=[4, 5, 7])
    means = over_seeds(rows, ["run"], means=["heads_left"])
    assert means["run"].fillna("none").tolist() == ["b", "none"]
    assert means["heads_left"].tolist() == [4.5, 7]


def test_speedups_are_over_the_whole_model_of_the_same_setup():
    """Steps halve, so gains are 1 and 2; the third repeat has no pair."""
    phases = ["encode", "encode", "decode", "decode"]
    table = pd.DataFrame({"phase": phases, "model": [0, 50, 50, 0], "speed": [2.0, 3, 8, 4]})
    raw = pd.DataFrame({"model": [0, 0, 0, 50, 50], "repeat": [0, 1, 2, 0, 1], "phase": "encode"})
    raw = raw.assign(seconds=[2.0, 8, 5, 1, 2], steps=[2, 2, 2, 1, 1])
    gains = speedups(table, raw, ["phase"], 0)
    assert gains["speedup"].tolist() == [1, 1.5, 2, 1]
    with pytest.raises(UserError, match="decode"):
        speedups(table[:3], raw, ["phase"], 0)
    (row,) = gains.dropna().itertuples(index=False)
    # Two differences: quantile of t with one degree of freedom times their standard error.
    reach = math.tan(0.475 * math.pi) * math.log(2) / 2
    middle, ends = math.log(2) / 2, (math.log(row.speedup_low), math.log(row.speedup_high))
    assert row.model == 50 and ends == pytest.approx((middle - reach, middle + reach))
    once = speedups(table, raw[raw["repeat"] == 0], ["phase"], 0)
    assert once["speedup_low"].isna().all()


MODEL = {"pair": "a-b", "run": "baseline", "seed": 1}


def times():
    """Return two repeats of a whole model and of one with half of the heads and twice the steps."""
    columns = ["model", "heads_left", "repeat", "seconds", "steps"]
    rows = [(0, 8, 1, 1.0, 40), (50, 4, 1, 1.0, 80), (0, 8, 2, 2.0, 40), (50, 4, 2, 1.6, 80)]
    names = {"phase": "decode", "batch_size": 4, "parameters": 9, "sentences": 10}
    return pd.DataFrame(rows, columns=columns).assign(**MODEL, **names)


def test_speed_is_compared_by_steps():
    whole, half = speed(times()).to_dict("records")
    assert (whole["mean"], whole["steps"], half["steps"], half["repeats"]) == (7.5, 4, 8, 2)
    assert whole["sd"] == pytest.approx(math.sqrt(12.5))
    assert half["speedup"] == pytest.approx(8.125 * 8 / (7.5 * 4))
    assert half["speedup_low"] * half["speedup_high"] == pytest.approx(2 * 2.5)
    assert math.isnan(whole["speedup_low"])


def test_importance_is_timed_by_geometric_means():
    rows = [
        ("importance", 1, 1.0),
        ("training", 1, 2.0),
        ("importance", 2, 4.0),
        ("training", 2, 4.5),
    ]
    raw = pd.DataFrame(rows, columns=["work", "repeat", "seconds"]).assign(**MODEL)
    (row,) = importance_time(raw).to_dict("records")
    assert (row["importance"], row["training"], row["ratio"]) == pytest.approx((2, 3, 2 / 3))
    assert row["ratio_low"] * row["ratio_high"] == pytest.approx(4 / 9) and row["repeats"] == 2
    (row,) = importance_time(raw[raw["repeat"] == 1]).to_dict("records")
    assert math.isnan(row["ratio_low"])
