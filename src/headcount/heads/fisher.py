"""Fisher information of the multipliers, and heads to prune by it, rearranged within layers.

Masking heads, ξ from 1 to a mask m, adds about ½ (1 − m)ᵀ F (1 − m) to the loss of a model whose
mean gradient is 0. F = E[g gᵀ] with the derivatives g of a sentence. Source: Kwon et al. 2022,
sections 4.1 and 4.2.
"""

import numpy as np

from headcount.base.addresses import HeadGrid
from headcount.base.ranking import Heads, rank_heads

_EQUAL = 1e-12  # of a layer's information: smaller gains are rounding


def rearranged(fisher: np.ndarray, grid: HeadGrid, count: int) -> Heads:
    """Return `count` heads of least information to mask, rearranged within their layers.

    `fisher` is F [heads, heads]. Its diagonal decides how many heads of each layer are masked, the
    last of equal heads first. Then, within each layer, a masked head and another are exchanged, the
    pair first that lowers the added loss most, for as long as it falls.
    """
    gone = set(rank_heads(np.diagonal(fisher))[grid.size - count :])
    for _, _, span in grid.layers():
        inside = [head for head in range(span.start, span.stop) if head in gone]
        gone.difference_update(inside)
        gone.update(_exchanged(fisher, inside, span))
    return tuple(sorted(gone))


def stays(fisher: np.ndarray, grid: HeadGrid) -> np.ndarray:
    """Return the share of the numbers of masked heads, 1 to all but one, at which a head stays.

    Heads are masked by `rearranged`. The result is [heads]; larger means more important.
    """
    counts = range(1, grid.size)
    total = np.zeros(grid.size)
    for count in counts:
        total += 1
        total[list(rearranged(fisher, grid, count))] -= 1
    return total / max(len(counts), 1)


def _exchanged(fisher: np.ndarray, gone: list[int], span: slice) -> list[int]:
    """Return the masked heads of one layer after every exchange that lowers the added loss.

    With m' = m + e_j − e_i, mᵀFm / 2 changes by (Fm)_j − (Fm)_i + (F_ii + F_jj) / 2 − F_ij.
    """
    block = fisher[span, span]
    out = np.zeros(len(block), dtype=bool)
    out[[head - span.start for head in gone]] = True
    least = _EQUAL * np.trace(block)
    while out.any() and not out.all():
        pull = block @ out
        diagonal = np.diagonal(block) / 2
        inside, outside = np.flatnonzero(out), np.flatnonzero(~out)
        change = (pull + diagonal)[None, outside] - (pull - diagonal)[inside, None]
        change = change - block[np.ix_(inside, outside)]
        comes, goes = np.unravel_index(change.argmin(), change.shape)
        if change[comes, goes] >= -least:
            break
        out[inside[comes]], out[outside[goes]] = False, True
    return [span.start + int(head) for head in np.flatnonzero(out)]
