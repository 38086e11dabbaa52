"""In which order heads are pruned, and the sets that this makes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.ranking import Heads, drawn_heads, rank_heads, step_sets
from headcount.base.settings.ablation import AblationSettings

ALL = "all"
"""The scope that is no kind: heads of the whole model."""

Rank = Callable[[Heads], np.ndarray]  # importance of the heads left, once some are silent


@dataclass(frozen=True)
class Curve:
    """Sets of heads to prune, each within the next; or one set that stands alone."""

    scope: str  # all, or the kind whose heads alone are pruned
    order: str  # importance, importance_raw, single, random or one_per_layer
    draw: int | None  # number of the random order, from 1
    sets: list[Heads]

    def cells(self, index: int) -> list[Any]:
        """Scope, order, index and draw."""
        return [self.scope, self.order, index, "" if self.draw is None else self.draw]


def list_curves(
    grid: HeadGrid,
    ranking: Rank,
    raw: Rank,
    effects: np.ndarray,
    settings: AblationSettings,
    seed: int,
) -> Iterator[Curve]:
    """By importance over all heads and over each kind's; by effect alone; at random; one left.

    `raw`: importance that is not normalised, which is another order only if `ranking` is.
    """
    everywhere = list(range(grid.size))
    kinds = [head.kind for head in grid.heads()]
    scopes = {ALL: everywhere} | {
        kind: [place for place in everywhere if kinds[place] == kind] for kind in KINDS
    }
    for scope, heads in scopes.items():
        if heads:
            yield Curve(scope, "importance", None, importance_sets(heads, ranking, settings))
    if settings.normalise != "none":
        yield Curve(ALL, "importance_raw", None, importance_sets(everywhere, raw, settings))
    least_harm = rank_heads(effects)  # the head without which BLEU is highest goes first
    yield Curve(ALL, "single", None, step_sets(least_harm, settings.steps))
    for draw in range(1, settings.draws + 1):
        drawn = [
            drawn_heads(everywhere, len(heads), seed, draw)
            for heads in step_sets(everywhere, settings.steps)
        ]
        yield Curve(ALL, "random", draw, drawn)
    yield Curve(ALL, "one_per_layer", None, [all_but_best(grid, ranking(()))])


def importance_sets(heads: Sequence[int], ranking: Rank, settings: AblationSettings) -> list[Heads]:
    """Some heads, the least important first, in steps; ranked anew after each if so wanted."""
    if not settings.reestimate:
        return step_sets(least_important(heads, ranking(())), settings.steps)
    silent: list[int] = []
    sets = [()]
    for size in map(len, step_sets(heads, settings.steps)[1:]):
        left = [head for head in heads if head not in silent]
        silent += least_important(left, ranking(tuple(sorted(silent))))[: size - len(silent)]
        sets.append(tuple(sorted(silent)))
    return sets


def all_but_best(grid: HeadGrid, values: np.ndarray) -> Heads:
    """Every head but the most important one of its kind and layer."""
    spans = [span for _, _, span in grid.layers() if span.stop > span.start]
    best = {span.start + int(values[span].argmax()) for span in spans}
    return tuple(place for place in range(grid.size) if place not in best)


def least_important(heads: Sequence[int], values: np.ndarray) -> list[int]:
    """Some heads, the least important first; of equal ones the last in flat order first."""
    wanted = set(heads)
    return [head for head in reversed(rank_heads(values)) if head in wanted]
