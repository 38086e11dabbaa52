"""Rows of a batch that stay, and slots of hypotheses in a search."""

import pytest
import torch

from headcount.model.layers import Memory
from headcount.search.history import Compaction, History

HEADS, WIDTH = 2, 3
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("leaving", "expected"),
    [
        # Four stay; rows 0, 2 and 3 are in place, and the last goes where row 1 was.
        ([False, True, False, False, True, False], [10, 15, 12, 13]),
        ([True, True], []),
        ([False, False], [10, 11]),
        ([False, True], [10]),
        ([True, False], [11]),
    ],
)
def test_the_last_rows_that_stay_fill_the_gaps(leaving, expected):
    staying, rows = Compaction(leaving, CPU), list(range(10, 10 + len(leaving)))
    assert (
        staying.of(torch.tensor(rows)).tolist() == [rows[row] for row in staying.order] == expected
    )
    assert staying.leaving == [row for row, leaves in enumerate(leaving) if leaves]


def numbered(numbers):
    """Keys [n, h, m, e] of hypotheses with these numbers [n][m], and values minus that."""
    keys = torch.tensor(numbers, dtype=torch.float32)[:, None, :, None]
    keys = keys.expand(-1, HEADS, -1, WIDTH)
    return keys, -keys


def looked_at(history, layer, numbers):
    """The numbers that each hypothesis [n][m] may look at once those of this step are there."""
    keys, values = history.extend(layer, *numbered(numbers))
    assert keys.shape == (len(numbers), HEADS, history.filled, WIDTH)
    history.look(Memory([], torch.ones(len(numbers), 1, 1, 1, dtype=torch.bool)))
    seen = history.self_attention.mask
    assert seen.shape == (len(numbers), 1, len(numbers[0]), history.filled)
    named = torch.zeros_like(seen[:, 0]).scatter_(2, history.paths, True)
    assert torch.equal(named, seen[:, 0])
    found = []
    for sentence, own in enumerate(seen[:, 0]):
        found.append([])
        for hypothesis in own:
            chosen = keys[sentence][:, hypothesis]
            assert torch.equal(values[sentence][:, hypothesis], -chosen)
            assert torch.equal(chosen, chosen[:1, :, :1].expand_as(chosen))  # in every head
            found[-1].append(sorted(chosen[0, :, 0].tolist()))
    return found


def test_children_see_what_their_parents_came_by():
    history = History(2, 2, 2, CPU)
    for layer in range(2):
        assert looked_at(history, layer, [[1], [2]]) == [[[1]], [[2]]]
    history.follow(torch.tensor([[0, 0], [0, 0]]))
    for layer in range(2):
        found = looked_at(history, layer, [[11, 12], [21, 22]])
        assert found == [[[1, 11], [1, 12]], [[2, 21], [2, 22]]]
    history.follow(torch.tensor([[1, 0], [1, 1]]))  # places change; nobody came by 21
    for layer in range(2):
        found = looked_at(history, layer, [[13, 14], [23, 24]])
        assert found == [[[1, 12, 13], [1, 11, 14]], [[2, 22, 23], [2, 22, 24]]]


@pytest.mark.parametrize("beam", [1, 3])
def test_long_searches_see_the_same_and_stay_small(beam):
    """Against lists of numbers, over more steps than there is room for; sentences leave."""
    draw = torch.Generator().manual_seed(beam)
    sentences = 4
    history = History(1, sentences, beam, CPU)
    lived, most = [[[]] for _ in range(sentences)], 0
    for step in range(60):
        width = len(lived[0])
        numbers = [[100 * step + 10 * s + m for m in range(width)] for s in range(len(lived))]
        for sentence, own in enumerate(lived):
            own[:] = [[*past, n] for past, n in zip(own, numbers[sentence], strict=True)]
        assert looked_at(history, 0, numbers) == lived
        different = max(len({n for past in own for n in past}) for own in lived)
        most = max(most, different)
        parents = torch.randint(width, (len(lived), beam), generator=draw)
        history.follow(parents)
        lived = [[own[p] for p in row] for own, row in zip(lived, parents.tolist(), strict=True)]
        if step in (20, 33):  # the first leaves, and the last takes its place
            leaves = [True, *[False] * (len(lived) - 1)]
            history.keep(Compaction(leaves, CPU))
            lived = [lived[-1], *lived[1:-1]]
    # Room for eight steps at first, then for twice what somebody came by; not for all 60 steps.
    assert history.size <= max(8 * beam, 2 * most)
    assert beam == 1 or history.size < 60 * beam
