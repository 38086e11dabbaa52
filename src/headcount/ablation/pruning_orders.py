"""Orders in which heads are pruned, and the sets of heads that they make."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headcount.ablation.masked_bleu import Point
from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.ranking import Heads, drawn_heads, rank_heads, step_sets
from headcount.base.settings.heads import PruningSteps
from headcount.heads.importance import normalise_layers
from headcount.heads.measures_files import Measured, rearranged

ALL = "all"
"""The scope of all attention types."""

Rank = Callable[[Heads], np.ndarray]  # importance of the other heads, with some masked


@dataclass(frozen=True)
class Curve:
    """Sets of heads to prune, each within the next unless the order is fisher_rearranged.

    Or one set that stands alone. `filled`: pruned heads give their mean output in place of zeros.
    """

    scope: str  # all, or the attention type whose heads alone are pruned
    order: str  # importance, _raw, _signed or _mean, single, random, one_per_layer, or a measure
    draw: int | None  # number of the random order, from 1
    sets: list[Heads]
    filled: bool = False

    def points(self) -> list[Point]:
        """Return its steps. Cells are scope, order, index and draw."""
        cells = (self.scope, self.order)
        return [Point((*cells, n, self.draw or ""), heads) for n, heads in enumerate(self.sets)]


def list_curves(
    grid: HeadGrid,
    importance: Rank,
    effects: np.ndarray,
    settings: PruningSteps,
    seed: int,
    signed: np.ndarray | None = None,
    measured: Measured | None = None,
) -> Iterator[Curve]:
    """Yield curves by importance over all heads and of each attention type, by effect, at random.

    Then all but the best head of each layer. `importance`, and `signed`, importance without
    absolute values, are not normalised. With `measured` there are more orders.
    """
    ranking = compared(importance, grid, settings)
    everywhere = list(range(grid.size))
    kinds = [head.kind for head in grid.heads()]
    scopes = {kind: [place for place in everywhere if kinds[place] == kind] for kind in KINDS}
    for scope, heads in {ALL: everywhere, **scopes}.items():
        if heads:
            yield Curve(scope, "importance", None, importance_sets(heads, ranking, settings.steps))
    if settings.normalise != "none":
        yield Curve(
            ALL, "importance_raw", None, importance_sets(everywhere, importance, settings.steps)
        )
    if signed is not None:
        order = least_important(everywhere, for_ranking(signed, grid, settings))
        yield Curve(ALL, "importance_signed", None, step_sets(order, settings.steps))
    least_harm = rank_heads(effects)  # the head without which BLEU is highest goes first
    yield Curve(ALL, "single", None, step_sets(least_harm, settings.steps))
    counts = [len(heads) for heads in step_sets(everywhere, settings.steps)]
    for draw in range(1, settings.draws + 1):
        drawn = [drawn_heads(everywhere, count, seed, draw) for count in counts]
        yield Curve(ALL, "random", draw, drawn)
    yield Curve(ALL, "one_per_layer", None, [all_but_best(grid, ranking(()))])
    if measured:
        yield from _by_measures(grid, measured, settings)
        by_importance = importance_sets(everywhere, ranking, settings.steps)
        yield Curve(ALL, "importance_mean", None, by_importance, filled=True)


def _by_measures(grid: HeadGrid, measured: Measured, settings: PruningSteps) -> Iterator[Curve]:
    """Yield a curve by each measure, and by Fisher information rearranged within layers."""
    for name, values in measured.values.items():
        sets = step_sets(least_important(range(grid.size), values), settings.steps)
        yield Curve(ALL, name, None, sets)
        if name == "fisher":
            again = [rearranged(measured.fisher, grid, len(heads)) for heads in sets]
            yield Curve(ALL, "fisher_rearranged", None, again)


def importance_sets(heads: Sequence[int], ranking: Rank, steps: int) -> list[Heads]:
    """Return heads in steps, the least important first, by the ranking after each step."""
    silent: list[int] = []
    sets = [()]
    for size in map(len, step_sets(heads, steps)[1:]):
        rest = [head for head in heads if head not in silent]
        silent += least_important(rest, ranking(tuple(sorted(silent))))[: size - len(silent)]
        sets.append(tuple(sorted(silent)))
    return sets


def all_but_best(grid: HeadGrid, values: np.ndarray) -> Heads:
    """Return every head but the most important one of its kind and layer."""
    spans = [span for _, _, span in grid.layers() if span.stop > span.start]
    best = {span.start + int(values[span].argmax()) for span in spans}
    return tuple(place for place in range(grid.size) if place not in best)


def least_important(heads: Sequence[int], values: np.ndarray) -> list[int]:
    """Return heads, the least important first, of equal ones the last in flat order first."""
    wanted = set(heads)
    return [head for head in reversed(rank_heads(values)) if head in wanted]


def for_ranking(values: np.ndarray, grid: HeadGrid, settings: PruningSteps) -> np.ndarray:
    """Return importance [heads], normalised by `ablation.normalise`."""
    return normalise_layers(values, grid) if settings.normalise == "layer_l2" else values


def compared(importance: Rank, grid: HeadGrid, settings: PruningSteps) -> Rank:
    """Return the importance after `for_ranking`."""
    return lambda silent: for_ranking(importance(silent), grid, settings)
