"""Orders in which heads are pruned, and the sets of heads that they make."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from headcount.ablation.masked_bleu import MaskedInputs, Point
from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.ranking import Heads, drawn_heads, head_masks, rank_heads, step_sets
from headcount.base.settings.heads import ImportanceSettings, PruningSteps
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import measure_importance, normalise_layers
from headcount.heads.measures_files import Measured, rearranged
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer

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
    signed: Rank | None = None,
    measured: Measured | None = None,
) -> Iterator[Curve]:
    """Yield curves by importance over all heads and of each attention type, by effect, at random.

    Then all but the best head of each layer. `importance` is not normalised, which is another order
    if heads are compared by normalised importance. With `signed`, importance without absolute
    values, and with what was `measured` there are more orders.
    """
    raw = cache(importance)  # orders begin with the same heads masked, and measuring takes time
    ranking = compared(raw, grid, settings)
    everywhere = list(range(grid.size))
    kinds = [head.kind for head in grid.heads()]
    scopes = {kind: [place for place in everywhere if kinds[place] == kind] for kind in KINDS}
    for scope, heads in {ALL: everywhere, **scopes}.items():
        if heads:
            yield Curve(scope, "importance", None, importance_sets(heads, ranking, settings))
    if settings.normalise != "none":
        yield Curve(ALL, "importance_raw", None, importance_sets(everywhere, raw, settings))
    if signed:
        ranked = importance_sets(everywhere, compared(cache(signed), grid, settings), settings)
        yield Curve(ALL, "importance_signed", None, ranked)
    least_harm = rank_heads(effects)  # the head without which BLEU is highest goes first
    yield Curve(ALL, "single", None, step_sets(least_harm, settings.steps))
    counts = [len(heads) for heads in step_sets(everywhere, settings.steps)]
    for draw in range(1, settings.draws + 1):
        drawn = [drawn_heads(everywhere, count, seed, draw) for count in counts]
        yield Curve(ALL, "random", draw, drawn)
    yield Curve(ALL, "one_per_layer", None, [all_but_best(grid, ranking(()))])
    if measured:
        yield from _by_measures(grid, measured, settings)
        by_importance = importance_sets(everywhere, ranking, settings)
        yield Curve(ALL, "importance_mean", None, by_importance, filled=True)


def _by_measures(grid: HeadGrid, measured: Measured, settings: PruningSteps) -> Iterator[Curve]:
    """Yield a curve by each measure, and by Fisher information rearranged within layers."""
    for name, values in measured.values.items():
        sets = step_sets(least_important(range(grid.size), values), settings.steps)
        yield Curve(ALL, name, None, sets)
        if name == "fisher":
            again = [rearranged(measured.fisher, grid, len(heads)) for heads in sets]
            yield Curve(ALL, "fisher_rearranged", None, again)


def importance_sets(heads: Sequence[int], ranking: Rank, settings: PruningSteps) -> list[Heads]:
    """Return heads in steps, the least important first, ranked anew after each if so set."""
    if not settings.reestimate:
        return step_sets(least_important(heads, ranking(())), settings.steps)
    silent: list[int] = []
    sets = [()]
    for size in map(len, step_sets(heads, settings.steps)[1:]):
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


def measured_anew(inputs: MaskedInputs, model: Transformer, settings: ImportanceSettings) -> Rank:
    """Return a function that measures the importance of a model's heads, with some removed.

    It returns [heads], not normalised, 0 for removed heads, on the sentences that are drawn.
    """
    text = read_drawn(inputs.pair, settings)

    def measure(silent: Heads) -> np.ndarray:
        kept = head_masks([silent], model.grid.size)[0]
        values = np.zeros(model.grid.size)
        if kept.any():
            smaller = remove_heads(model, torch.from_numpy(kept)) if silent else model
            values[kept > 0] = measure_importance(smaller, text, settings)
        return values

    return measure
