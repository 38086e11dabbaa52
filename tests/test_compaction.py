"""Rows of a shrinking batch."""

import pytest
import torch

from headcount.runs.cache import Cache
from headcount.runs.compaction import Compaction


def test_the_last_that_stay_fill_the_gaps():
    # Rows 1 and 4 leave six, so four stay; 0, 2 and 3 are in place, and 5 goes where 1 was.
    staying = Compaction(torch.tensor([False, True, False, False, True, False]))
    rows = torch.tensor([[10.0], [11.0], [12.0], [13.0], [14.0], [15.0]])
    assert staying.of(rows).tolist() == [[10.0], [15.0], [12.0], [13.0]]
    # Any other tensor in the same order, whatever its type and shape, is changed alike.
    assert staying.of(torch.arange(6)).tolist() == [0, 5, 2, 3]


@pytest.mark.parametrize(
    ("leaving", "expected"),
    [([True, True], []), ([False, False], [7, 8]), ([False, True], [7]), ([True, False], [8])],
)
def test_none_or_all_may_leave(leaving, expected):
    assert Compaction(torch.tensor(leaving)).of(torch.tensor([7, 8])).tolist() == expected


def test_a_cache_keeps_what_it_knows_of_those_that_stay_and_grows_on():
    # Three sentences, 2 heads, width 1; keys are 10 · sentence + step, values minus that.
    cache = Cache()

    def fill(sentences, step):
        keys = torch.tensor([10.0 * s + step for s in sentences])[:, None, None, None]
        keys = keys.expand(-1, 2, 1, 1)
        return cache.extend(keys, -keys)

    fill([0, 1, 2], 0)
    fill([0, 1, 2], 1)
    cache.keep(Compaction(torch.tensor([True, False, False])))  # 2 goes where 0 was
    for step in (2, 3, 4):
        keys, values = fill([2, 1], step)
    assert keys.shape == (2, 2, 5, 1)
    assert keys[0, 1, :, 0].tolist() == [20, 21, 22, 23, 24]
    assert keys[1, 0, :, 0].tolist() == [10, 11, 12, 13, 14]
    assert torch.equal(values, -keys)
