"""What stands beside a claim that nothing decides: a number that the claim is about."""

import pytest
from planted_claims import decided
from planted_files import groups_of, kept_at_40
from planted_heads import agreement, correlation, sweep

from headcount.findings.claims.verdicts import UNDECIDED


@pytest.mark.parametrize("name", ["HM-01", "HM-02"])
@pytest.mark.parametrize("changes", [[-20, -0.1], [-0.1, -20]])
def test_few_groups_are_too_coarse_to_tell(tmp_path, name, changes):
    """Of two groups ranks agree with BLEU, or they do not; each is half of the heads."""
    found = decided(tmp_path, name, groups_of(changes))
    told = "2 groups of heads; the claim is about 8"
    assert (found.verdict, found.reason) == (UNDECIDED, told)


def test_early_is_not_the_first_checkpoint_which_has_learnt_least(tmp_path):
    """At update 100 of 1000 there is nothing to lose; the next one keeps 89 %, perhaps 90 %."""
    found = decided(tmp_path, "MI-12", kept_at_40({100: 99, 400: 89, 500: 75, 1000: 70}))
    assert (found.verdict, found.value) == (UNDECIDED, 89)
    assert found.reason == "between the limits: update 400 of 1000"


@pytest.mark.parametrize(
    ("left", "lost", "value"),
    [
        ([40, 20, 4], [-0.4, -1, -9], -1),  # 58 % gone is the first beyond a half, 92 % far away
        ([44, 40, 30], [-0.6, -0.7, -0.8], -0.8),  # none is beyond: that with the fewest heads
    ],
)
def test_a_claim_about_a_share_shows_what_that_share_costs(tmp_path, left, lost, value):
    found = decided(tmp_path, "VO-20", sweep(left, lost, "all", 48))
    assert (found.verdict, found.value) == (UNDECIDED, value)


def test_measures_that_lack_are_told_of(tmp_path):
    files = agreement(
        correlation("importance", "relevance", 0.5), correlation("relevance", "confidence", 0.6)
    )
    found = decided(tmp_path, "X-01", files)
    told = "2 of 10 pairs of measures above 0, 0 below, 8 not measured; least: "
    assert found.reason == f"between the limits: {told}importance and relevance"
