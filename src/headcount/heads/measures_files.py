"""Files of more measures, which more_measures.py makes, and pruning by Fisher information.

Masking heads, ξ from 1 to a mask m, adds about ½ (1 − m)ᵀ F (1 − m) to the loss of a model whose
mean gradient is 0. F = E[g gᵀ] with the derivatives g of a sentence. Source: Kwon et al. 2022,
sections 4.1 and 4.2.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from headcount.base.addresses import HeadGrid
from headcount.base.files import read_csv
from headcount.base.head_values import COLUMNS as VALUE_COLUMNS
from headcount.base.head_values import read_head_values, read_numbers
from headcount.base.ranking import Heads, rank_heads
from headcount.store.model_folder import ModelFolder, check_measured

COLUMNS = {
    "fisher": ("kind", "layer", "head", "other", "value"),
    "means": ("kind", "layer", "head", "dimension", "value"),
}
"""Columns of the files beside a file of measures."""
NOT_RANKED = ("fisher_rearranged", "shapley_error")
"""Statistics that are not a value by which heads are pruned."""
_SCRIPT = "scripts/more_measures.py"
_EQUAL = 1e-12  # of a layer's information: smaller gains are rounding


@dataclass(frozen=True)
class Measured:
    """Measures of the heads of one model."""

    values: dict[str, np.ndarray]  # [heads] by name, in the order of the file
    fisher: np.ndarray  # F [heads, heads], 0 between layers


def beside(measures: Path, part: str) -> Path:
    """Return the file beside a file of measures: Fisher information or mean outputs."""
    return measures.with_name(f"{measures.stem}_{part}.csv")


def files_of(measures: Path) -> list[Path]:
    """Return a file of measures and the two that `write_measures` writes beside it."""
    return [measures, *(beside(measures, part) for part in COLUMNS)]


def read_measures(path: Path, folder: ModelFolder, grid: HeadGrid) -> Measured:
    """Return the measures of the model in a folder. Raises UserError for files of another model."""
    names = dict.fromkeys(row["statistic"] for _, row in read_csv(path, VALUE_COLUMNS))
    ranked = [name for name in names if name not in NOT_RANKED]
    values = {name: read_head_values(path, name, grid) for name in ranked}
    fisher = np.zeros((grid.size, grid.size))
    keys = [row[:-1] for row in fisher_rows(fisher, grid)]
    read = read_numbers(beside(path, "fisher"), COLUMNS["fisher"], keys)
    fisher[tuple(zip(*_pairs(grid), strict=True))] = read
    for file in (path, beside(path, "fisher")):
        check_measured(file, folder.weight_files, _SCRIPT)
    return Measured(values, fisher)


def read_mean_outputs(path: Path, folder: ModelFolder) -> np.ndarray:
    """Return mean outputs [heads, e] of the model in a folder. Raises UserError for another."""
    grid, width = folder.settings.grid, folder.settings.head_width
    keys = [row[:-1] for row in mean_rows(np.zeros((grid.size, width)), grid)]
    means = read_numbers(path, COLUMNS["means"], keys)
    check_measured(path, folder.weight_files, _SCRIPT)
    return means.reshape(grid.size, width)


def fisher_rows(fisher: np.ndarray, grid: HeadGrid) -> list[list]:
    """Return the cells of Fisher information within layers, a pair of heads in each row."""
    heads = grid.heads()
    return [[*heads[a], heads[b].head, float(fisher[a, b])] for a, b in _pairs(grid)]


def mean_rows(means: np.ndarray, grid: HeadGrid) -> list[list]:
    """Return the cells of mean outputs [heads, e]."""
    by_head = zip(grid.heads(), means.tolist(), strict=True)
    return [[*head, *cell] for head, values in by_head for cell in enumerate(values)]


def _pairs(grid: HeadGrid) -> list[tuple[int, int]]:
    """Return all pairs of heads of one layer, in flat order."""
    spans = [range(grid.size)[span] for _, _, span in grid.layers()]
    return [pair for span in spans for pair in product(span, repeat=2)]


def rearranged(fisher: np.ndarray, grid: HeadGrid, count: int) -> Heads:
    """Return `count` heads of least information to mask, rearranged within their layers."""
    gone = set(rank_heads(np.diagonal(fisher))[grid.size - count :])
    for _, _, span in grid.layers():
        inside = [head for head in range(span.start, span.stop) if head in gone]
        gone.difference_update(inside)
        gone.update(_exchanged(fisher, inside, span))
    return tuple(sorted(gone))


def stays(fisher: np.ndarray, grid: HeadGrid) -> np.ndarray:
    """Return the share of the numbers of masked heads, 1 to all but one, at which a head stays."""
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
