"""Heads in order, in groups and in the sets that masking experiments silence."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UserError
from headcount.base.ranking import cut_groups, random_sets, rank_heads, ranked_sets


def test_most_important_first_and_ties_in_flat_order():
    assert rank_heads([0.5, 2.0, -1.0, 0.5, 3.0]) == [4, 1, 0, 3, 2]
    assert rank_heads([1.0] * 20) == list(range(20))


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.integers(1, n)))
)
def test_groups_are_near_equal_with_the_longer_ones_first(drawn):
    order, count = drawn
    groups = cut_groups(order, count)
    assert sum(groups, []) == list(order)
    longer, rest = divmod(len(order), count)[::-1]
    assert [len(group) for group in groups] == [rest + 1] * longer + [rest] * (count - longer)
    with pytest.raises(UserError, match=rf"masking\.groups: expected at most {len(order)},"):
        cut_groups(order, len(order) + 1)


def test_sets_by_importance_by_hand():
    found = [(s.order, s.index, s.heads) for s in ranked_sets([4, 1, 0, 3, 2], 3)]
    assert found == [
        ("none", 0, ()),
        ("group", 1, (1, 4)),
        ("group", 2, (0, 3)),
        ("group", 3, (2,)),
        ("ascending", 0, ()),
        ("ascending", 1, (2,)),  # the least important group first
        ("ascending", 2, (0, 2, 3)),
        ("ascending", 3, (0, 1, 2, 3, 4)),
        ("descending", 0, ()),
        ("descending", 1, (1, 4)),
        ("descending", 2, (0, 1, 3, 4)),
        ("descending", 3, (0, 1, 2, 3, 4)),
    ]
    assert all(masked.draw is None for masked in ranked_sets([1, 0], 1))


def test_random_sets_have_the_sizes_of_the_ranked_ones():
    sets = random_sets(heads=7, groups=3, draws=2, seed=5)
    assert Counter((s.order, s.draw) for s in sets) == {
        ("random_group", 1): 3,
        ("random_cumulative", 1): 6,  # from no head to all
        ("random_group", 2): 3,
        ("random_cumulative", 2): 6,
    }
    for draw in (1, 2):
        groups = [s.heads for s in sets if (s.order, s.draw) == ("random_group", draw)]
        unions = [s.heads for s in sets if (s.order, s.draw) == ("random_cumulative", draw)]
        assert [len(group) for group in groups] == [3, 2, 2]  # 7 heads in 3 groups
        assert sorted(sum(groups, ())) == list(range(7))
        first, second, third = groups
        # 0 3 5 7 from the first group on, and 2 4 from the last on.
        expected = [(), third, first, third + second, first + second, first + second + third]
        assert unions == [tuple(sorted(union)) for union in expected]


@pytest.mark.parametrize(("heads", "count"), [(36, 16), (6, 7), (48, 9), (72, 9), (144, 9)])
def test_every_size_of_both_curves_has_a_random_control(heads, count):
    """36 heads in 8 groups: 0 4 8 12 16 21 26 31 36 ascending, 0 5 10 15 20 24 28 32 36."""
    groups = min(heads, 8)
    ranked = ranked_sets(list(range(heads)), groups)
    curves = {len(s.heads) for s in ranked if s.order in ("ascending", "descending")}
    drawn = [s for s in random_sets(heads, groups, 1, 4) if s.order == "random_cumulative"]
    assert [len(s.heads) for s in drawn] == sorted(curves)
    assert len(drawn) == count


def test_draws_are_seeded_and_differ():
    def first_groups(seed: int, draws: int) -> list[tuple[int, ...]]:
        sets = random_sets(48, 8, draws, seed)
        return [s.heads for s in sets if s.order == "random_group" and s.index == 1]

    three = first_groups(1, 3)
    assert len(set(three)) == 3
    assert first_groups(1, 2) == three[:2]  # more draws leave the first ones alone
    assert not set(first_groups(2, 3)) & set(three)
    assert first_groups(1, 0) == []
