"""Verdicts on claims that a number alone would give, and its interval or its test does not."""

from math import isnan

import pytest
from planted_claims import PLANTED, decided
from planted_files import PAIR, Files, deltas, effect, groups_of, super_heads
from planted_heads import heads_with, kinds_left, ranked, roles, sweep, syntax

from headcount.findings.claims.verdicts import FAILS, HOLDS, UNDECIDED, p_of_interval


def test_the_bottom_group_must_cost_little(tmp_path):
    """The top group costs 20 BLEU more than the bottom group, but that costs 2 ± 0.3 itself."""
    found = decided(tmp_path, "HM-01", groups_of([-22, -15, -9, -5, -4, -3, -2.5, -2]))
    assert (found.verdict, found.value) == (UNDECIDED, 20)
    assert found.reason.endswith("BLEU 1.00; the bottom group changes BLEU by -2.00")


def test_groups_lose_much_by_their_intervals(tmp_path):
    """Two of four groups lose 1.2 ± 0.3: significantly, but not clearly more than 1 BLEU."""
    found = decided(tmp_path, "HM-02", groups_of([-20, -15, -9, -5, -1.2, -1.2, 0, 0]))
    assert (found.verdict, found.value) == (UNDECIDED, 0.5)
    assert found.reason == "between the limits: 2 of 4 groups lose little, 0 much"


def test_a_small_gain_where_none_was_claimed_decides_nothing(tmp_path):
    """Vietnamese gains 0.2 ± 0.02: significant, but less than 0.3."""
    gains = {PAIR: [0.4, 0.5, 0.6], "b.vi-en": [0.19, 0.2, 0.21]}
    assert decided(tmp_path / "little", "HM-05", deltas("impt", gains)).verdict == UNDECIDED
    gains["b.vi-en"] = [0.39, 0.4, 0.41]
    assert decided(tmp_path / "much", "HM-05", deltas("impt", gains)).verdict == FAILS


def test_super_heads_of_impt_are_judged_by_the_baseline(tmp_path):
    """Largest importance 5 in the baseline, 4 in Impt-N, 2 in Random-N: less, but not the least."""
    found = decided(tmp_path, "HM-10", super_heads(5, 2, 4))
    assert (found.verdict, found.seeds) == (UNDECIDED, 3)
    assert found.reason.startswith("between the limits: decided by: largest over mean, to random")


def test_relevance_has_the_interval_of_the_layer_that_decides(tmp_path):
    """Of three layers of four heads, 1/4 each if uniform: 0.4, 0.35 and 0.26 at most, ± 0.01.

    Two are a majority; the second has 0.35 / 0.25 = 1.4 times uniform, from 0.34 / 0.25 on.
    """
    relevance = [0.4, 0.2, 0.2, 0.2, 0.35, 0.25, 0.2, 0.2, 0.26, 0.25, 0.25, 0.24]
    heads = heads_with(layer=[0] * 4 + [1] * 4 + [2] * 4, relevance=relevance)
    found = decided(tmp_path, "VO-01", roles(heads))
    assert found.reason == "2 of 3 layers; largest 1.60 times uniform"
    assert found.verdict == HOLDS
    assert (found.value, found.low, found.high) == pytest.approx((1.4, 1.36, 1.44))


def test_chance_is_the_p_of_a_rare_head_that_leads(tmp_path):
    """One of four heads in each of three models: 1 / 64."""
    holds, fails = (files() for files in PLANTED["VO-03"])
    assert decided(tmp_path / "holds", "VO-03", holds).p == pytest.approx(1 / 64)
    assert isnan(decided(tmp_path / "fails", "VO-03", fails).p)


def test_a_second_head_of_a_relation_has_an_interval(tmp_path):
    """Right 600 times of 1,000, the baseline 400 other times: 0.2 ± 1.96 · √(1 − 0.04) / √1000.

    Right 480 times, its margin is 0.08 ± 0.058.
    """
    found = decided(tmp_path / "two", "VO-08", syntax([700, 600, 100]))
    assert (found.verdict, found.reason) == (HOLDS, "nsubj to_dependent")
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.1393, 0.2607), abs=1e-4)
    found = decided(tmp_path / "one", "VO-08", syntax([700, 480, 100]))
    assert (found.verdict, found.value) == (UNDECIDED, 0.08)


def test_kinds_have_the_interval_of_heads_drawn_at_random(tmp_path):
    """24 of 48 left, 6, 8 and 10 of each kind: 4, but √(2/3 · 24 · 24 / 47) · 1.96 = 5.6."""
    points = [(6, 8, 10)] * 3
    found = decided(tmp_path, "VO-17", {"figures/voita_fig9.csv": kinds_left(points)})
    assert found.reason == "between the limits: in order at 3 of 3 points"
    assert (found.verdict, found.value) == (UNDECIDED, 4)
    assert (found.low, found.high, found.p) == pytest.approx((-1.602, 9.602, 0.1617), abs=1e-3)


def test_one_of_two_comparisons_must_be_significant_of_both(tmp_path):
    """Gates are 1 ± 0.5 BLEU below ranking with p 0.04 at both shares: corrected, 0.08."""
    files: Files = ranked(1)
    for row in files["tables/voita_comparison.csv"]:
        row |= effect(1, 0.5, 0.04)
    found = decided(tmp_path, "X-02", files)
    assert (found.verdict, found.p) == (UNDECIDED, 0.08)


def test_a_model_of_as_few_heads_that_loses_less_decides_nothing(tmp_path):
    """Four heads have a function: a run that leaves 8 loses 3 BLEU, one that leaves 4 only 0.8."""
    files = sweep([8, 4], [-3, -0.8]) | roles(heads_with(function=["-1"] * 4))
    assert decided(tmp_path, "VB-01", files).verdict == UNDECIDED


def test_an_interval_without_width_shows_no_more_than_resamples():
    assert p_of_interval(0.5, 0.5, 0.7) == pytest.approx(1 / 1001)
    assert p_of_interval(0.0, 0.0, 0.0) == 1
