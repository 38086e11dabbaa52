"""Tests of claims on literal numbers; expected p and intervals come from scipy.stats."""

from math import isnan, nan

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from headcount.analysis.claims.claims import Rule
from headcount.analysis.claims.table import corrected, decide, p_of_interval, stouffer


def models(*numbers: tuple, seeds: list[int] | None = None, **columns: object) -> pd.DataFrame:
    rows = pd.DataFrame(numbers, columns=["value", "low", "high"])
    seeds = seeds or list(range(1, len(rows) + 1))
    rows = rows.assign(**{"experiment": "e", "pair": "a.x-y", "seed": seeds} | columns)
    return rows.assign(training=rows["pair"] + rows["seed"].astype(str))


def normal_p(z: float) -> float:
    return 2 * stats.norm.sf(abs(z))


@pytest.mark.parametrize(
    ("test", "holds", "p"),
    [
        # The half of the interval on the limit's side is 0.5, which is 1.96 standard errors.
        ({"above": 0.0}, True, normal_p(0.6 / (0.5 / 1.959964))),
        ({"above": 0.8}, False, normal_p(0.2 / (0.9 / 1.959964))),
        ({"below": 0.8}, True, normal_p(0.2 / (0.9 / 1.959964))),
        ({"below": 0.0}, False, normal_p(0.6 / (0.5 / 1.959964))),
    ],
)
def test_one_model_is_tested_by_its_own_interval(test, holds, p):
    decision = decide(models((0.6, 0.1, 1.5)), Rule(**test))
    assert (decision["holds"], decision["scope"]) == (holds, "one training")
    assert decision["p"] == pytest.approx(p, rel=1e-4)
    assert (decision["value"], decision["low"], decision["high"]) == pytest.approx((0.6, 0.1, 1.5))


def test_intervals_of_models_are_averaged_and_trainings_are_tested_by_t_over_seeds():
    rows = models((1, 0.5, 1.5), (2, 1, 3), (6, 3, 9))
    decision = decide(rows, Rule(above=0))
    assert (decision["value"], decision["low"], decision["high"]) == (3, 1.5, 4.5)
    assert (decision["scope"], decision["seeds"]) == ("these models", 3)
    rows = models((1, 0.9, 1.1), (2, 1.9, 2.1), (3.5, 3, 4))
    decision = decide(rows, Rule(above=0, about="trainings"))
    expected = stats.ttest_1samp([1, 2, 3.5], 0)
    interval = expected.confidence_interval()
    assert decision["p"] == pytest.approx(expected.pvalue)
    assert (decision["low"], decision["high"]) == pytest.approx((interval.low, interval.high))
    assert (decision["scope"], decision["seeds"]) == ("trainings", 3)
    alone = decide(rows[:1], Rule(above=0, about="trainings"))
    assert (alone["scope"], alone["low"]) == ("one training", pytest.approx(0.9))


def test_ratios_are_averaged_on_the_log_scale_and_correlations_on_fishers():
    ratio = decide(models((2, 1, 4), (8, 4, 16)), Rule(above=1, scale="ratio"))
    assert (ratio["value"], ratio["low"], ratio["high"]) == pytest.approx((4, 2, 8))
    both = decide(models((0.9, 0.5, 0.95), (0.1, 0, 0.2)), Rule(above=0, scale="correlation"))
    assert both["value"] == pytest.approx(np.tanh((np.arctanh(0.9) + np.arctanh(0.1)) / 2))


def test_a_training_counts_once_and_pairs_of_a_seed_are_averaged():
    """Seed 1 stands in two experiments; pair b has one seed, which says nothing about seeds."""
    rows = models(*[(v, nan, nan) for v in (1, 3, 5, 9)], seeds=[1, 1, 2, 1])
    rows["experiment"], rows["pair"] = ["e", "f", "e", "e"], ["a", "a", "a", "b"]
    decision = decide(rows, Rule(above=0, about="trainings"))
    assert (decision["value"], decision["seeds"]) == (3.5, 2)  # of 2 and 5
    rows.loc[len(rows)] = rows.iloc[-1].to_dict() | {"seed": 2, "value": 11}
    decision = decide(rows, Rule(above=0, about="trainings"))
    assert decision["value"] == pytest.approx(((2 + 9) / 2 + (5 + 11) / 2) / 2)


def test_all_parts_must_hold_and_one_is_enough_to_fail():
    rows = models((1, 0.5, 1.5), (0.4, 0.1, 0.7), part=["sure", "less"])
    decision = decide(rows, Rule(above=0))
    assert (decision["holds"], decision["part"], decision["tests"]) == (True, "less", 2)
    assert decision["p"] == pytest.approx(normal_p(0.4 / (0.3 / 1.959964)), rel=1e-4)
    against = models((1, 0.5, 1.5), (-0.4, -0.7, -0.1), part=["sure", "less"])
    decision = decide(against, Rule(above=0))
    assert (decision["holds"], decision["part"]) == (False, "less")
    assert decision["p"] == pytest.approx(2 * normal_p(0.4 / (0.3 / 1.959964)), rel=1e-4)


def test_parts_may_have_limits_of_their_own_and_a_missing_one_keeps_a_claim_from_holding():
    rows = models((1, 0.5, 1.5), (0.4, 0.1, 0.7), part=["one", "two"])
    test = Rule(above={"one": 0.7}, below={"two": 0.8})
    decision = decide(rows, test)
    assert (decision["part"], decision["side"], decision["limit"]) == ("one", "above", 0.7)
    alone = decide(rows[:1], test)
    assert alone["missing"] and alone["p"] == 1
    failed = decide(rows[:1], Rule(above={"one": 2, "two": 0}))
    assert failed["missing"] and not failed["holds"] and failed["p"] < 0.05


def test_numbers_without_a_test_decide_by_where_their_bounds_end():
    test = Rule(above=0.25, below=0.4)
    inside, outside = (decide(models((v, v, v)), test) for v in (0.3, 0.5))
    assert inside["holds"] and inside["sure"] and isnan(inside["p"])
    assert not outside["holds"] and outside["sure"]
    shares = models((0.6, 0.5, 0.9), tested=False)
    assert decide(shares, Rule(above=0.4))["sure"]
    assert not decide(shares, Rule(above=0.55))["sure"]
    assert not decide(shares, Rule(above=0.95))["holds"]


def test_a_model_on_the_other_side_leaves_the_mean_open():
    rows = models((3, 2.5, 3.5), (2, 1.5, 2.5), (-1, -1.5, -0.5))
    decision = decide(rows, Rule(above=0))
    assert (decision["value"], decision["opposed"], decision["p"]) == (
        pytest.approx(4 / 3),
        True,
        1,
    )
    near = decide(rows.replace(-0.5, 0.5), Rule(above=0))
    assert not near["opposed"] and near["p"] < 0.05


def test_numbers_without_an_interval_decide_nothing_alone():
    assert decide(models((1, nan, nan)), Rule(above=0, about="trainings")) is None
    two = models((1, nan, nan), (2, nan, nan))
    assert decide(two, Rule(above=0, about="trainings"))["seeds"] == 2


def test_p_of_shuffles_and_of_intervals():
    rows = models((0.5, nan, nan), (0.3, nan, nan), (-0.1, nan, nan), shuffled_p=[0.02, 0.1, 0.8])
    one_sided = [0.01, 0.05, 1 - 0.4]
    expected = stats.combine_pvalues(one_sided, method="stouffer").pvalue
    assert stouffer(rows) == pytest.approx(2 * expected)
    assert decide(rows, Rule(above=0))["p"] == pytest.approx(2 * expected)
    # Pairs that share a training have their mean z: here z of p 0.02 and z of 0.1 count as one.
    pairs = rows.assign(training=["one", "one", "two"])
    z = stats.norm.isf(one_sided)
    assert stouffer(pairs) == pytest.approx(normal_p(((z[0] + z[1]) / 2 + z[2]) / np.sqrt(2)))
    assert decide(pairs, Rule(above=0))["seeds"] == 2
    assert p_of_interval(5, 4.9, 5.1) == pytest.approx(1 / 1001)
    assert p_of_interval(0.0, -1, 1) == 1
    assert isnan(p_of_interval(1, nan, nan))


def test_correction_within_a_paper_is_benjamini_and_hochbergs():
    p = pd.Series([0.001, nan, 0.04, 0.03, 0.5])
    expected = stats.false_discovery_control(p.dropna())
    assert corrected(p).dropna().tolist() == pytest.approx(expected.tolist())
    assert corrected(p).index.tolist() == p.index.tolist()
