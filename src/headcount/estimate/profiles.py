"""Which sets of heads an ablation or a profile of pruning will mask, before anything is known."""

from itertools import chain

import numpy as np

from headcount.ablation.ablation import all_but_one, single_heads
from headcount.ablation.pruning_orders import list_curves
from headcount.base.addresses import HeadGrid
from headcount.base.ranking import Heads
from headcount.base.settings.ablation import AblationSettings
from headcount.heads.measures_files import RANKED, Measured


def ablation_sets(grid: HeadGrid) -> tuple[int, int]:
    """How many sets an ablation masks on a test set, and on dev, where every head stays alone.

    On a test set one head of each layer does; a layer of one head is none of these.
    """
    single, layers = {point.heads for point in single_heads(grid)}, all_but_one(grid)
    chosen, tried = {layer[0].heads for layer in layers}, {each.heads for each in chain(*layers)}
    return len({(), *single, *chosen}), len({(), *single, *tried})


def profile_sets(grid: HeadGrid, settings: AblationSettings) -> tuple[set[Heads], int]:
    """The sets, as of importance and effects that are at random; and how often heads are ranked.

    More than once where importance is measured anew after each step. Sets in which pruned heads
    give their means are left out.
    """
    drawn, effects = np.random.default_rng(0).random((2, grid.size))
    silenced = []

    def importance(silent: Heads) -> np.ndarray:
        silenced.append(silent)
        return drawn

    signed = importance if settings.signed else None
    measured = _measured(grid) if settings.measures else None
    curves = list_curves(grid, importance, effects, settings, 1, signed, measured)
    sets = {heads for curve in curves if not curve.filled for heads in curve.sets}
    return sets, len(silenced)


def _measured(grid: HeadGrid) -> Measured:
    """Measures as they are at random."""
    drawn = np.random.default_rng(1)
    fisher = drawn.random((grid.size, grid.size))
    return Measured({name: drawn.random(grid.size) for name in RANKED}, fisher + fisher.T)
