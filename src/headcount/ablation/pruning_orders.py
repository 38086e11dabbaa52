"""In which order heads are pruned, and the sets that this makes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from headcount.ablation.masked_bleu import MaskedInputs, Point
from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.ranking import Heads, drawn_heads, head_masks, rank_heads, step_sets
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import measure_importance, normalise_layers
from headcount.heads.measures_files import Measured, rearranged
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer

ALL = "all"
"""The scope that is no kind: heads of the whole model."""

Rank = Callable[[Heads], np.ndarray]  # importance of the heads left, once some are silent


@dataclass(frozen=True)
class Curve:
    """Sets of heads to prune, each within the next unless the order is fisher_rearranged.

    Or one set that stands alone. `filled`: pruned heads give their mean output in place of zeros.
    """

    scope: str  # all, or the kind whose heads alone are pruned
    order: str  # importance, _raw, _signed or _mean, single, random, one_per_layer, or a measure
    draw: int | None  # number of the random order, from 1
    sets: list[Heads]
    filled: bool = False

    def points(self) -> list[Point]:
        """Its steps; cells are scope, order, index and draw."""
        cells = (self.scope, self.order)
        return [Point((*cells, n, self.draw or ""), heads) for n, heads in enumerate(self.sets)]


def list_curves(
    grid: HeadGrid,
    importance: Rank,
    effects: np.ndarray,
    settings: AblationSettings,
    seed: int,
    signed: Rank | None = None,
    measured: Measured | None = None,
) -> Iterator[Curve]:
    """By importance over all heads and over each kind's; by effect alone; at random; one left.

    `importance` is not normalised, which is an order of its own only if heads are compared by
    importance that is. So is `signed`, importance without absolute values; without it there is no
    such order. With what was `measured` more come last, see `_by_measures`.
    """
    raw = cache(importance)  # orders begin with the same heads silent, and measuring takes time
    ranking = compared(raw, grid, settings)
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
    if signed:
        ranked = importance_sets(everywhere, compared(cache(signed), grid, settings), settings)
        yield Curve(ALL, "importance_signed", None, ranked)
    least_harm = rank_heads(effects)  # the head without which BLEU is highest goes first
    yield Curve(ALL, "single", None, step_sets(least_harm, settings.steps))
    for draw in range(1, settings.draws + 1):
        drawn = [
            drawn_heads(everywhere, len(heads), seed, draw)
            for heads in step_sets(everywhere, settings.steps)
        ]
        yield Curve(ALL, "random", draw, drawn)
    yield Curve(ALL, "one_per_layer", None, [all_but_best(grid, ranking(()))])
    if measured:
        yield from _by_measures(grid, ranking, measured, settings)


def _by_measures(
    grid: HeadGrid, ranking: Rank, measured: Measured, settings: AblationSettings
) -> Iterator[Curve]:
    """By each measure as it is, harmful heads first; and by importance, with means for zeros.

    Fisher information comes twice, the second time rearranged within layers.
    """
    everywhere = list(range(grid.size))
    for name, values in measured.values.items():
        sets = step_sets(least_important(everywhere, values), settings.steps)
        yield Curve(ALL, name, None, sets)
        if name == "fisher":
            again = [rearranged(measured.fisher, grid, len(heads)) for heads in sets]
            yield Curve(ALL, "fisher_rearranged", None, again)
    by_importance = importance_sets(everywhere, ranking, settings)
    yield Curve(ALL, "importance_mean", None, by_importance, filled=True)


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


def for_ranking(values: np.ndarray, grid: HeadGrid, settings: AblationSettings) -> np.ndarray:
    """Importance [heads] as `ablation.normalise` wants it before heads are compared."""
    return normalise_layers(values, grid) if settings.normalise == "layer_l2" else values


def compared(importance: Rank, grid: HeadGrid, settings: AblationSettings) -> Rank:
    """The same importance as it is compared."""
    return lambda silent: for_ranking(importance(silent), grid, settings)


def measured_anew(
    inputs: MaskedInputs, settings: ImportanceSettings
) -> Callable[[Transformer, Heads], np.ndarray]:
    """What measures a model without its silent heads on the sentences that `importance` draws.

    It gives the importance of every head, [heads] in flat order, not normalised; 0 of silent ones,
    which are not there.
    """
    text = read_drawn(inputs.pair, settings)

    def measure(model: Transformer, silent: Heads) -> np.ndarray:
        kept = head_masks([silent], model.grid.size)[0]
        values = np.zeros(model.grid.size)
        if kept.any():
            smaller = remove_heads(model, torch.from_numpy(kept)) if silent else model
            values[kept > 0] = measure_importance(smaller, text, settings)
        return values

    return measure
