"""Token-budget batches: within the budget, every pair once, the same for the same seed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UserError
from headcount.data.batches import (
    BatchPlan,
    ParallelText,
    ResidentText,
    collate,
    in_order,
    pad_sources,
)
from headcount.data.vocabulary import BOS, EOS, PAD, UNK


def text_of(lengths):
    """A text with sides of these lengths: [(source, target)]."""
    return ParallelText([[4] * src for src, _ in lengths], [[5] * tgt for _, tgt in lengths])


def draw(seed, pairs=83, longest=12):
    """A text of random lengths, empty sides among them."""
    drawn = np.random.default_rng(seed).integers(0, longest + 1, (pairs, 2))
    return text_of(drawn.tolist())


def as_lists(batches):
    return [batch.tolist() for batch in batches]


sides = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(st.lists(sides, min_size=1, max_size=40), st.integers(0, 60), st.integers(0, 5))
def test_budget_holds_and_every_pair_comes_once(lengths, spare, epoch):
    longest = max(map(max, lengths)) + 1  # with EOS
    budget = longest + spare
    batches = BatchPlan(text_of(lengths), budget, seed=3).epoch(epoch)
    for batch in batches:
        assert len(batch) >= 1
        assert len(batch) * max(max(lengths[i]) + 1 for i in batch) <= budget
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))


@given(st.lists(sides, min_size=1, max_size=40), st.integers(0, 60))
def test_cut_is_as_coarse_as_the_budget_allows(lengths, spare):
    budget = max(map(max, lengths)) + 1 + spare
    batches = BatchPlan(text_of(lengths), budget, seed=3).in_order()
    for batch, following in zip(batches, batches[1:], strict=False):
        # Sorted by length, so the next pair is the longest of the batch it would have joined.
        longest = max(lengths[following[0]]) + 1
        assert (len(batch) + 1) * longest > budget


def test_cut_by_hand():
    # Lengths with EOS, longer side: 3, 6, 2, 3, 4. Sorted: 2, 3, 3, 4, 6.
    # Budget 9: 2 + 3 + 3 fill 3 × 3 = 9; then 4 alone, as 2 × 6 > 9; then 6.
    text = text_of([(2, 1), (3, 5), (1, 0), (0, 2), (3, 3)])
    expected = [[0, 2, 3], [4], [1]]
    assert [sorted(batch) for batch in BatchPlan(text, 9, seed=0).in_order()] == expected
    assert [sorted(batch.indices) for batch in in_order(text, 9)] == expected
    # A budget below the longest pair is raised to 6, which takes 2 + 3 as 2 × 3.
    assert [len(batch.indices) for batch in in_order(text, 1)] == [2, 1, 1, 1]
    assert text.longest == 6 and ParallelText([], []).longest == 0


def test_plan_is_a_function_of_lengths_budget_seed_and_epoch():
    text = draw(1)
    others = ParallelText([[8] * len(i) for i in text.src], [[9] * len(i) for i in text.tgt])
    plan = BatchPlan(text, 40, seed=7)
    first = as_lists(plan.epoch(4))
    torch.manual_seed(0)  # no global generator takes part
    np.random.seed(0)
    plan.epoch(0)
    for same in (plan, BatchPlan(text, 40, seed=7), BatchPlan(others, 40, seed=7)):
        assert as_lists(same.epoch(4)) == first
    for other in (plan.epoch(1), *(BatchPlan(text, *key).epoch(4) for key in ((40, 8), (80, 7)))):
        assert as_lists(other) != first


def test_batches_are_shuffled_and_their_members_change():
    plan = BatchPlan(text_of([(3, 3)] * 60), 20, seed=1)  # all alike: 5 pairs to a batch
    first, second = (as_lists(plan.epoch(number)) for number in range(2))
    assert [len(batch) for batch in first] == [5] * 12
    assert set(map(frozenset, first)) != set(map(frozenset, second))


def test_padding_and_real_positions_by_hand():
    text = ParallelText(src=[[4, 5, 6], [7], []], tgt=[[8], [9, 10, 11], []])
    batch = collate(text, [1, 2, 0])
    assert batch.indices == [1, 2, 0]
    # 0 padding, 1 BOS, 2 EOS
    assert batch.src.tolist() == [[7, 2, 0, 0], [2, 0, 0, 0], [4, 5, 6, 2]]
    assert batch.tgt_in.tolist() == [[1, 9, 10, 11], [1, 0, 0, 0], [1, 8, 0, 0]]
    assert batch.tgt_out.tolist() == [[9, 10, 11, 2], [2, 0, 0, 0], [8, 2, 0, 0]]
    # Rows start at 0, 4 and 8 when flattened.
    assert batch.real.tolist() == [0, 1, 2, 3, 4, 8, 9]
    assert batch.target_tokens == 7  # 4 + 1 + 2
    assert sum(batch.src_lengths) == 7  # 2 + 1 + 4
    assert (batch.src_lengths, batch.tgt_lengths) == ([2, 1, 4], [4, 1, 2])
    assert pad_sources([[7], [4, 5]]).tolist() == [[7, 2, 0], [4, 5, 2]]


words = st.lists(st.integers(UNK, 30), max_size=6)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=9), st.data())
def test_resident_batches_are_those_padded_pair_by_pair(pairs, data):
    text = ParallelText([src for src, _ in pairs], [tgt for _, tgt in pairs])
    ids = data.draw(st.permutations(range(len(pairs))))[: data.draw(st.integers(1, len(pairs)))]
    batch = ResidentText(text).batch(ids)

    def padded(rows):
        width = max(map(len, rows))
        return [[*row, *[PAD] * (width - len(row))] for row in rows]

    assert batch.indices == ids
    assert batch.src.tolist() == padded([[*text.src[i], EOS] for i in ids])
    assert batch.tgt_in.tolist() == padded([[BOS, *text.tgt[i]] for i in ids])
    assert batch.tgt_out.tolist() == padded([[*text.tgt[i], EOS] for i in ids])
    flat = [token for row in batch.tgt_out.tolist() for token in row]
    assert batch.real.tolist() == [place for place, token in enumerate(flat) if token != PAD]
    assert sum(batch.src_lengths) == sum(len(text.src[i]) + 1 for i in ids)
    assert batch.target_tokens == len(batch.real)


def test_batches_are_made_on_the_texts_device():
    # Tensors on `meta` have no numbers, so whatever asks for one there raises.
    text, meta = draw(1, pairs=9), torch.device("meta")
    made = [ResidentText(text, meta).batch([4, 0, 7]), collate(text, [2], meta)]
    for batch in [*made, *in_order(text, 20, meta)]:
        fields = (batch.src, batch.tgt_in, batch.tgt_out, batch.real)
        assert {field.device.type for field in fields} == {"meta"}
        assert batch.src.shape == (len(batch.indices), max(batch.src_lengths))
        assert batch.tgt_in.shape == batch.tgt_out.shape
        assert batch.real.shape == (batch.target_tokens,)


def test_f37_no_pair_and_a_pair_above_the_budget_are_refused():
    text = text_of([(2, 2), (3, 9), (4, 1)])
    with pytest.raises(UserError, match=r"pair 2 has 10 subwords .* budget of 9"):
        BatchPlan(text, 9, seed=1)
    BatchPlan(text, 10, seed=1)
    with pytest.raises(UserError, match="there is no sentence pair"):
        BatchPlan(ParallelText([], []), 100, seed=1)
