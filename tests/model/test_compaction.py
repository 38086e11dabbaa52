"""Rows of a shrinking batch."""

import pytest
import torch

from headcount.search.history import Compaction

CPU = torch.device("cpu")


def test_the_last_that_stay_fill_the_gaps():
    # Rows 1 and 4 leave six, so four stay; 0, 2 and 3 are in place, and 5 goes where 1 was.
    staying = Compaction([False, True, False, False, True, False], CPU)
    rows = torch.tensor([[10.0], [11.0], [12.0], [13.0], [14.0], [15.0]])
    assert staying.of(rows).tolist() == [[10.0], [15.0], [12.0], [13.0]]
    # Any other tensor in the same order, whatever its type and shape, is changed alike.
    assert staying.of(torch.arange(6)).tolist() == [0, 5, 2, 3]
    assert staying.of_list([10, 11, 12, 13, 14, 15]) == [10, 15, 12, 13]
    assert staying.leaving == [1, 4]


@pytest.mark.parametrize(
    ("leaving", "expected"),
    [([True, True], []), ([False, False], [7, 8]), ([False, True], [7]), ([True, False], [8])],
)
def test_none_or_all_may_leave(leaving, expected):
    staying = Compaction(leaving, CPU)
    assert staying.of(torch.tensor([7, 8])).tolist() == staying.of_list([7, 8]) == expected
