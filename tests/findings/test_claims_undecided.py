"""The number that stands beside a claim is the one that its words name, decided or not."""

from math import isnan, nan

import numpy as np
import pytest
from planted_claims import PLANTED, decided
from planted_files import PAIR, areas, deltas, groups_of, kept_at_40, ratios, steps
from planted_heads import agreement, correlation, heads_with, roles, settled, sweep
from scipy import stats

from headcount.findings.claims.table import adjust
from headcount.findings.claims.verdicts import FAILS, HOLDS, UNDECIDED


@pytest.mark.parametrize("name", ["HM-01", "HM-02"])
@pytest.mark.parametrize("changes", [[-20, -0.1], [-0.1, -20]])
def test_few_groups_are_too_coarse_to_tell(tmp_path, name, changes):
    """Of two groups ranks agree with BLEU, or they do not; each is half of the heads."""
    found = decided(tmp_path, name, groups_of(changes))
    told = "2 groups of heads; the claim is about 8"
    assert (found.verdict, found.reason) == (UNDECIDED, told)


def test_early_is_a_tenth_of_the_training_and_not_the_first_checkpoint(tmp_path):
    """Update 50 of 1000 has nothing to lose, 90 keeps 84 %; without 90 half of it tells nothing."""
    early = {50: 99, 90: 84, 400: 89, 500: 75, 1000: 70}
    found = decided(tmp_path / "early", "MI-12", kept_at_40(early))
    assert (found.verdict, found.value) == (UNDECIDED, 84)
    assert found.reason == "between the limits: update 90 of 1000"
    late = kept_at_40({10: 20, 500: 50, 1000: 92})
    found = decided(tmp_path / "late", "MI-12", late)
    assert (found.verdict, isnan(found.value)) == (UNDECIDED, True)
    assert found.reason == "no checkpoint after the first within 10% of the training"


@pytest.mark.parametrize(
    ("left", "lost", "verdict", "value", "gone"),
    [
        ([40, 20, 4], [-0.4, -1, -9], UNDECIDED, -1, "58%"),  # the first beyond a half
        ([44, 40, 30], [-0.6, -0.7, -0.8], UNDECIDED, nan, "38%"),  # none is beyond
        ([36, 20, 4], [-2.2, -5, -9], FAILS, -5, "58%"),  # with 25 % gone it loses 2.2
        ([36, 20, 4], [-2.2, -0.1, -0.2], HOLDS, -0.2, "92%"),  # the one of 25 % gone is no matter
        ([36, 20], [-2.2, -0.7], UNDECIDED, -0.7, "58%"),  # 0.7 ± 0.3 is not clearly above 0.5
    ],
)
def test_a_claim_about_a_share_shows_what_that_share_costs(
    tmp_path, left, lost, verdict, value, gone
):
    found = decided(tmp_path, "VO-20", sweep(left, lost, "all", 48))
    assert found.verdict == verdict and gone in found.reason
    assert found.value == pytest.approx(value, nan_ok=True)


def test_pruning_of_a_fifth_shows_what_a_fifth_costs(tmp_path):
    """10 % pruned loses 2 ± 0.3, 20 % loses 5, or 0.9: not clearly more than 1."""
    for loss, verdict in ((-5, FAILS), (-0.9, UNDECIDED)):
        found = decided(tmp_path / verdict, "MI-06", steps({0: 0, 10: -2, 20: loss, 30: -9}))
        assert (found.verdict, found.value) == (verdict, loss)


def test_as_few_heads_as_have_a_function_are_no_more_than_these(tmp_path):
    """Four of 16 heads have a function; a run that leaves 8 is none of as few."""
    known = roles(heads_with(function=["-1"] * 4))
    found = decided(tmp_path / "few", "VB-01", sweep([8, 3, 2], [-3, -9, -20]) | known)
    assert (found.verdict, found.value) == (FAILS, -9)
    found = decided(tmp_path / "many", "VB-01", sweep([8], [-3]) | known)
    assert (found.verdict, isnan(found.value)) == (UNDECIDED, True)


def test_the_smallest_share_of_gates_that_settle_is_no_mean_of_sweeps(tmp_path):
    """1.0 of one sweep and 0.9375 of another."""
    name = "tables/voita_pruning.csv"
    files = settled(1.0, 0.0)
    files[name] += [row | {"scope": "all", "run": "x"} for row in settled(0.9375, 0.0)[name]]
    found = decided(tmp_path, "VO-13", files)
    assert (found.verdict, found.value) == (HOLDS, 0.9375)


@pytest.mark.parametrize("name", ["VO-23", "VB-04"])
def test_the_weakest_correlation_is_no_mean_of_trainings(tmp_path, name):
    """In order ρ is −1, with two neighbours exchanged −0.9."""
    table = "tables/voita_pruning.csv"
    files = sweep([16, 12, 8, 4, 2], [0] * 5)
    files[table] += [row | {"seed": 2} for row in sweep([16, 8, 12, 4, 2], [0] * 5)[table]]
    assert decided(tmp_path, name, files).value == pytest.approx(-0.9)


def test_the_smallest_correlation_is_no_mean_of_trainings(tmp_path):
    files = agreement(correlation("importance", "relevance", 0.5),
                      correlation("importance", "relevance", 0.3) | {"seed": 2})  # fmt: skip
    assert decided(tmp_path, "X-01", files).value == 0.3


def test_measures_that_lack_are_told_of(tmp_path):
    files = agreement(
        correlation("importance", "relevance", 0.5), correlation("relevance", "confidence", 0.6)
    )
    found = decided(tmp_path, "X-01", files)
    told = "2 of 10 pairs of measures above 0, 0 below, 8 not measured; least: "
    assert found.reason == f"between the limits: {told}importance and relevance"


def test_p_is_of_the_number_and_is_corrected_for_the_tests_that_could_decide(tmp_path):
    """Impt-N has 4, 5 and 7 times the variance; three contrasts, t of the logarithms by scipy."""
    found = decided(tmp_path / "three", "HM-07", ratios(5, [0.4, 0.5, 0.6], [4, 5, 7]))
    gaps = np.log([4, 5, 7]) - np.log([0.4, 0.5, 0.6])  # the largest is that to Random-N
    assert (found.value, found.tests) == (pytest.approx(np.exp(gaps.mean())), 3)
    alone = stats.ttest_1samp(np.log([4, 5, 7]), 0).pvalue
    assert found.p == pytest.approx(min(alone, stats.ttest_1samp(gaps, 0).pvalue))
    assert adjust({"HM-07": found})["HM-07"] == pytest.approx(3 * found.p)
    lower = areas({"enc_self/importance": 5, "dec_self/importance": -3}, "dec_enc/importance")
    found = decided(tmp_path / "two", "MI-13", lower)
    assert (found.verdict, found.value, found.p, found.tests) == (FAILS, -3, 0.001, 2)
    pairs = {PAIR: [-0.4, -0.5, -0.6], "b.de-en": [0.4, 0.5, 0.6]}
    found = decided(tmp_path / "pairs", "HM-04", deltas("random", pairs))
    assert (found.verdict, found.tests) == (FAILS, 2)
    assert found.p == pytest.approx(stats.ttest_1samp(pairs[PAIR], 0).pvalue)
    assert decided(tmp_path / "one", "HM-06", PLANTED["HM-06"][1]()).tests == 1
