"""Heads in order of importance, and the sets of them that masking experiments silence.

Heads are flat positions in the order of `HeadGrid`.
"""

import math
from collections.abc import Iterable, Sequence
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
    """Return all heads, most important first, and equally important ones in flat order."""
    return np.argsort(-np.asarray(importance, dtype=float), kind="stable").tolist()


def least_heads(importance: Sequence[float] | np.ndarray, percent: float) -> Heads:
    """Return the least important share of the heads, sorted. Their number is rounded up."""
    order = rank_heads(importance)[::-1]
    return tuple(sorted(order[: math.ceil(len(order) * percent / 100)]))


def head_masks(sets: Sequence[Heads], heads: int) -> np.ndarray:
    """Return one mask per set, [sets, heads]: 0 for its heads, 1 for all others."""
    masks = np.ones((len(sets), heads), dtype=np.float32)
    for mask, silent in zip(masks, sets, strict=True):
        mask[list(silent)] = 0
    return masks


def cut_groups(ranking: Ranking, groups: int) -> list[list[int]]:
    """Return a ranking cut into near-equal groups, of which the first may be longer by one."""
    if groups > len(ranking):
        raise UserError(f"masking.groups: expected at most {len(ranking)}, found {groups}")
    return [group.tolist() for group in np.array_split(np.array(ranking), groups)]


def ranked_sets(ranking: Ranking, groups: int) -> list[MaskedSet]:
    """Return the sets by importance: no head, single groups, and cumulative groups both ways.

    Group 1 has the most important heads. `descending` masks groups from the first on,
    `ascending` from the last on. Index 0 of both is no head, the last index all heads.
    """
    cut = cut_groups(ranking, groups)
    return [
        *_numbered("none", None, [[]]),
        *_numbered("group", None, cut, first=1),
        *_numbered("ascending", None, accumulate(cut[::-1], initial=[])),
        *_numbered("descending", None, accumulate(cut, initial=[])),
    ]


def random_sets(heads: int, groups: int, draws: int, seed: int) -> list[MaskedSet]:
    """Return sets of random heads of the sizes in `ranked_sets`. Each draw is a random ranking.

    Unions of its groups, from either end, are sorted by size, each size once. Draw k of a seed is
    the same for every model with as many heads.
    """
    sets = []
    for draw in range(1, draws + 1):
        ranking = np.random.default_rng([seed, draw]).permutation(heads).tolist()
        cut = cut_groups(ranking, groups)
        sets += _numbered("random_group", draw, cut, first=1)
        # Of two unions of one size, the union from the first group on is used.
        both = (accumulate(parts, initial=[]) for parts in (cut[::-1], cut))
        unions = [one for sums in both for one in _numbered("random_cumulative", draw, sums)]
        by_size = {len(union.heads): union for union in unions}
        sets += [by_size[size] for size in sorted(by_size)]
    return sets


def step_sets(order: Sequence[int], steps: int) -> list[Heads]:
    """Return the first heads of an order, sorted, in equal steps (rounded up) from none to all."""
    counts = [-(-len(order) * step // steps) for step in range(steps + 1)]
    return [tuple(sorted(order[:count])) for count in counts]


def drawn_heads(within: Sequence[int], count: int, seed: int, draw: int) -> Heads:
    """Return `count` heads at random, sorted. A larger count has all heads of a smaller one."""
    drawn = np.random.default_rng([seed, draw]).permutation(np.array(within, dtype=int))
    return tuple(sorted(drawn[:count].tolist()))


def _numbered(
    order: str, draw: int | None, sets: Iterable[list[int]], first: int = 0
) -> list[MaskedSet]:
    numbered = enumerate(sets, start=first)
    return [MaskedSet(order, index, draw, tuple(sorted(heads))) for index, heads in numbered]
