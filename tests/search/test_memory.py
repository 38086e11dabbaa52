"""Memory of sources that are read once, and slots of hypotheses in a search."""

import pytest
import torch
from small_models import UNEVEN, make_model

from headcount.data.batches import pad_sources
from headcount.model.layers import Memory
from headcount.search.history import Compaction, History
from headcount.search.sources import encode_once

# 17 heads, the first five of them the encoder's.
SOURCES = [[4, 8, 5], [7], [4, 8, 5], [4, 8, 5], [7]]


def masks(*silent: int | None) -> torch.Tensor:
    """A row per entry, with that head silent."""
    rows = torch.ones(len(silent), 17)
    for row, head in enumerate(silent):
        if head is not None:
            rows[row, head] = 0
    return rows


@pytest.fixture
def counted(monkeypatch):
    """A model, and how many sources each call of its encoder had."""
    model, sizes = make_model(heads=UNEVEN), []
    encode = type(model).encode

    def counting(self, src, multiplier=None):
        sizes.append(len(src))
        return encode(self, src, multiplier)

    monkeypatch.setattr(type(model), "encode", counting)
    return model, sizes


@pytest.mark.parametrize(
    ("multiplier", "read"),
    [
        (None, 2),
        (torch.ones(17), 2),  # one mask for all
        (masks(5, 6, 7, 16, None), 2),  # decoder heads alone
        (masks(0, 6, 0, 1, None), 3),  # rows 0 and 2 are the same, 1 and 4 too
        (masks(0, 0, 1, 2, 1), 5),
    ],
)
def test_memory_is_that_of_every_source_alone(counted, multiplier, read):
    model, sizes = counted
    with torch.inference_mode():
        found = encode_once(model, SOURCES, multiplier)
        assert sizes == [read]
        plain = model.encode(pad_sources(SOURCES), multiplier)
    assert torch.equal(found.mask, plain.mask)
    for one, other in zip(found.keys_values, plain.keys_values, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


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
    assert staying.of(torch.tensor(rows)).tolist() == staying.of_list(rows) == expected
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
