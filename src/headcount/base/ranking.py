"""Heads in order of importance, and the sets of them that masking experiments silence.

Heads are flat positions in the order of `HeadGrid`.
"""

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
    """All heads, most important first; equally important ones in flat order."""
    return np.argsort(-np.asarray(importance, dtype=float), kind="stable").tolist()


def head_masks(sets: Sequence[Heads], heads: int) -> np.ndarray:
    """A mask for each set, [sets, heads]: 0 for its heads, 1 for the rest."""
    masks = np.ones((len(sets), heads), dtype=np.float32)
    for mask, silent in zip(masks, sets, strict=True):
        mask[list(silent)] = 0
    return masks


def cut_groups(ranking: Ranking, groups: int) -> list[list[int]]:
    """A ranking cut into near-equal groups, the first ones longer by one where it must be.

    Raises UserError if there are more groups than heads.
    """
    if groups > len(ranking):
        raise UserError(f"masking.groups: expected at most {len(ranking)} heads, found {groups}")
    return [group.tolist() for group in np.array_split(np.array(ranking), groups)]


def ranked_sets(ranking: Ranking, groups: int) -> list[MaskedSet]:
    """The sets by importance: none; each group alone; from none to all heads, both ways.

    Group 1 holds the most important heads. `descending` masks groups from the first on,
    `ascending` from the last on; index 0 of both is no head, the last index all of them.
    """
    cut = cut_groups(ranking, groups)
    return [
        *_numbered("none", None, [[]]),
        *_numbered("group", None, cut, first=1),
        *_numbered("ascending", None, accumulate(cut[::-1], initial=[])),
        *_numbered("descending", None, accumulate(cut, initial=[])),
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
        sets += _numbered("random_group", draw, cut, first=1)
        # Where groups are unequal, unions from the last on have sizes of their own; of two with
        # one size that from the first on is taken.
        both = (accumulate(each, initial=[]) for each in (cut[::-1], cut))
        unions = [union for each in both for union in _numbered("random_cumulative", draw, each)]
        by_size = {len(union.heads): union for union in unions}
        sets += [by_size[size] for size in sorted(by_size)]
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


def _numbered(
    order: str, draw: int | None, sets: Iterable[list[int]], first: int = 0
) -> list[MaskedSet]:
    numbered = enumerate(sets, start=first)
    return [MaskedSet(order, index, draw, tuple(sorted(heads))) for index, heads in numbered]
