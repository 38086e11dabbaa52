"""Sets of heads that a profile of pruning will mask."""

import pytest

from headcount.base.addresses import HeadGrid
from headcount.base.settings.ablation import AblationSettings
from headcount.estimate.profiles import profile_sets

GRID = HeadGrid({"enc_self": (2, 2), "dec_self": (), "dec_enc": ()})


@pytest.mark.parametrize("reestimate, rankings", [(False, 1), (True, 2)])
def test_heads_are_ranked_once_or_before_each_step(reestimate, rankings):
    """Two steps: no head, two, all four; the last step takes what the second ranking leaves.

    Each order has its own pair of heads at most, and one head of each layer is a pair too.
    """
    asked = AblationSettings(steps=2, draws=1, normalise="none", reestimate=reestimate)
    sets, found = profile_sets(GRID, asked)
    assert found == rankings
    more, _ = profile_sets(GRID, asked.model_copy(update={"measures": True}))
    assert sets < more and {len(heads) for heads in more} == {0, 2, 4}
    assert {(), (0, 1, 2, 3)} < sets and {len(heads) for heads in sets} == {0, 2, 4}
