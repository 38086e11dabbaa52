"""Fisher information of the multipliers, and which heads go by it, rearranged within layers.

Switching heads off, ξ from 1 to a mask m, adds about ½ (1 − m)ᵀ F (1 − m) to the loss of a model
whose gradient is 0 on average, F = E[g gᵀ] with a sentence's derivatives g. Source: Kwon et al.
2022, sections 4.1 and 4.2.
"""

from itertools import product
from pathlib import Path

import numpy as np

from headcount.base.addresses import HeadGrid
from headcount.base.head_values import read_in_order
from headcount.base.ranking import Heads, rank_heads

COLUMNS = ("kind", "layer", "head", "other", "value")
_EQUAL = 1e-12  # of a layer's information: smaller gains are rounding


def added_loss(fisher: np.ndarray, gone: list[int]) -> float:
    """½ (1 − m)ᵀ F (1 − m) for a mask that switches these heads off; nats if F is in nats²."""
    return float(fisher[np.ix_(gone, gone)].sum()) / 2


def rearranged(fisher: np.ndarray, grid: HeadGrid, count: int) -> Heads:
    """So many heads to switch off: those of least information, rearranged within their layers.

    `fisher`: F [heads, heads]. How many go of each layer the diagonal says, of equal heads the
    last first; then, within each layer, a head that goes and one that stays change places, the
    pair first that lowers `added_loss` most, for as long as it falls.
    """
    gone = set(rank_heads(np.diagonal(fisher))[grid.size - count :])
    for _, _, span in grid.layers():
        inside = [head for head in range(span.start, span.stop) if head in gone]
        gone.difference_update(inside)
        gone.update(_exchanged(fisher, inside, span))
    return tuple(sorted(gone))


def stays(fisher: np.ndarray, grid: HeadGrid) -> np.ndarray:
    """In what share of the numbers of heads to switch off, 1 to all but one, each stays; [heads].

    By `rearranged`; larger means more important.
    """
    counts = range(1, grid.size)
    total = np.zeros(grid.size)
    for count in counts:
        total += 1
        total[list(rearranged(fisher, grid, count))] -= 1
    return total / max(len(counts), 1)


def fisher_rows(fisher: np.ndarray, grid: HeadGrid) -> list[list]:
    """The cells of `COLUMNS`: F within layers, a pair of heads a row."""
    places = zip(*_places(grid), strict=True)
    return [[*key, float(fisher[place])] for key, place in zip(_pairs(grid), places, strict=True)]


def read_fisher(path: Path, grid: HeadGrid) -> np.ndarray:
    """F [heads, heads] with zeros between layers, from a file of `fisher_rows`.

    Raises UserError unless the file has a finite number for each pair of heads of a layer of this
    model, in order, and no other row.
    """
    fisher = np.zeros((grid.size, grid.size))
    fisher[_places(grid)] = read_in_order(path, COLUMNS, _pairs(grid), "scripts/more_measures.py")
    return fisher


def _pairs(grid: HeadGrid) -> list[tuple]:
    """Kind, layer and both heads of every pair of a layer, in the order of files."""
    return [
        (kind, layer, head, other)
        for kind, layer, span in grid.layers()
        for head, other in product(range(span.stop - span.start), repeat=2)
    ]


def _places(grid: HeadGrid) -> tuple[list[int], list[int]]:
    """Rows and columns of F of the same pairs."""
    spans = [range(span.start, span.stop) for *_, span in grid.layers()]
    pairs = [pair for span in spans for pair in product(span, repeat=2)]
    return [head for head, _ in pairs], [other for _, other in pairs]


def _exchanged(fisher: np.ndarray, gone: list[int], span: slice) -> list[int]:
    """The heads of one layer that go, after every exchange that lowers what their absence adds.

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
