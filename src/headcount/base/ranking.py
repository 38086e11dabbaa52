"""Heads in order of importance, and the sets of them that masking experiments silence.

Heads are flat positions in the order of `HeadGrid`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from headcount.base.errors import UserError

Heads = tuple[int, ...]
"""Flat positions, sorted."""
Ranking = list[int]
"""Flat positions of all heads, most important first."""


@dataclass(frozen=True)
class MaskedSet:
    """Heads to mask together, and their place in the experiment."""

    order: str  # none, group, ascending, descending, random_group or random_cumulative
    index: int  # number of the group, from 1; cumulatively: how many groups are masked
    draw: int | None  # number of the random ranking, from 1
    heads: Heads


def rank_heads(importance: Sequence[float] | np.ndarray) -> Ranking:
    """All heads, most important first; equally important ones in flat order."""
    return np.argsort(-np.asarray(importance, dtype=float), kind="stable").tolist()


def head_masks(sets: Sequence[Heads], heads: int) -> np.ndarray:
    """A mask for each set, [sets, heads]: 0 for its heads, 1 for the rest."""
    masks = np.ones((len(sets), heads), dtype=np.float32)
    for mask, silent in zip(masks, sets, strict=True):
        mask[list(silent)] = 0
    return masks


def check_groups(groups: int, heads: int) -> None:
    """Raises UserError if a model has fewer heads than groups are asked for."""
    if groups > heads:
        raise UserError(
            f"masking.groups: expected at most {heads}, the number of the model's heads, "
            f"found {groups}"
        )


def cut_groups(ranking: Ranking, groups: int) -> list[list[int]]:
    """A ranking cut into near-equal groups, the first ones longer by one where it must be.

    Raises UserError if there are more groups than heads.
    """
    check_groups(groups, len(ranking))
    return [group.tolist() for group in np.array_split(np.array(ranking), groups)]


def ranked_sets(ranking: Ranking, groups: int) -> list[MaskedSet]:
    """The sets by importance: none; each group alone; from none to all heads, both ways.

    Group 1 holds the most important heads. `descending` masks groups from the first on,
    `ascending` from the last on; index 0 of both is no head, the last index all of them.
    """
    cut = cut_groups(ranking, groups)
    return [
        _set("none", 0, None, []),
        *_groups("group", cut, None),
        *_cumulative("ascending", cut[::-1], None),
        *_cumulative("descending", cut, None),
    ]


def random_sets(heads: int, groups: int, draws: int, seed: int) -> list[MaskedSet]:
    """Sets of random heads, as large as those of `ranked_sets`: each draw is a random ranking.

    Its groups control single groups; their unions, from either end, control both cumulative
    curves and are listed by size, each size once. Draw k of a seed is the same for every model
    with as many heads.
    """
    sets = []
    for draw in range(1, draws + 1):
        ranking = np.random.default_rng([seed, draw]).permutation(heads).tolist()
        cut = cut_groups(ranking, groups)
        sets += _groups("random_group", cut, draw)
        sets += _both_ends("random_cumulative", cut, draw)
    return sets


def step_sets(order: Sequence[int], steps: int) -> list[Heads]:
    """The first heads of an order, sorted, in equal steps from none to all of them.

    Step i has i / steps of the heads, rounded up: the rule of Michel et al.'s code.
    """
    counts = [-(-len(order) * step // steps) for step in range(steps + 1)]
    return [tuple(sorted(order[:count])) for count in counts]


def drawn_heads(within: Sequence[int], count: int, seed: int, draw: int) -> Heads:
    """`count` of some heads at random, sorted; those of a smaller count are among them."""
    drawn = np.random.default_rng([seed, draw]).permutation(np.array(within, dtype=int))
    return tuple(sorted(drawn[:count].tolist()))


def _groups(order: str, cut: list[list[int]], draw: int | None) -> list[MaskedSet]:
    return [_set(order, index, draw, group) for index, group in enumerate(cut, start=1)]


def _cumulative(order: str, cut: list[list[int]], draw: int | None) -> list[MaskedSet]:
    unions = accumulate(cut, initial=[])
    return [_set(order, index, draw, union) for index, union in enumerate(unions)]


def _both_ends(order: str, cut: list[list[int]], draw: int | None) -> list[MaskedSet]:
    """Unions from the first group on, and those from the last on that have sizes of their own.

    The latter are there only where groups are unequal, for `ascending` begins with smaller ones.
    """
    unions = [*_cumulative(order, cut[::-1], draw), *_cumulative(order, cut, draw)]
    by_size = {len(union.heads): union for union in unions}  # of equal ones that from the first on
    return [by_size[size] for size in sorted(by_size)]


def _set(order: str, index: int, draw: int | None, heads: list[int]) -> MaskedSet:
    return MaskedSet(order, index, draw, tuple(sorted(heads)))
