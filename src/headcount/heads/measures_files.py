"""Files of more measures, which more_measures.py makes.

Their readers are here, so that a change of one measure's code does not outdate what uses them.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from headcount.base import head_values
from headcount.base.addresses import HeadGrid
from headcount.base.files import read_csv
from headcount.store.model_folder import ModelFolder, check_measured

COLUMNS = {
    "fisher": ("kind", "layer", "head", "other", "value"),
    "means": ("kind", "layer", "head", "dimension", "value"),
}
"""Columns of the files beside a file of measures."""
NOT_RANKED = ("fisher_rearranged", "shapley_error")
"""Statistics that are not a value by which heads are pruned."""
_SCRIPT = "scripts/more_measures.py"


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
    """Return the measures of the model in a folder, by which heads can be pruned.

    Raises UserError if a file is damaged or belongs to another model.
    """
    names = dict.fromkeys(row["statistic"] for _, row in read_csv(path, head_values.COLUMNS))
    ranked = [name for name in names if name not in NOT_RANKED]
    values = {name: head_values.read_head_values(path, name, grid) for name in ranked}
    fisher, pairs = np.zeros((grid.size, grid.size)), fisher_pairs(grid)
    rows, columns = ([place[side] for _, place in pairs] for side in (0, 1))
    fisher[rows, columns] = _read(beside(path, "fisher"), "fisher", [key for key, _ in pairs])
    for file in (path, beside(path, "fisher")):
        check_measured(file, folder.weight_files, "what was measured of the heads", _SCRIPT)
    return Measured(values, fisher)


def read_mean_outputs(path: Path, folder: ModelFolder) -> np.ndarray:
    """Return the mean outputs [heads, e] of the model in a folder.

    Raises UserError if the file is damaged or belongs to another model.
    """
    grid, width = folder.settings.grid, folder.settings.head_width
    means = _read(path, "means", _dimensions(grid, width)).reshape(grid.size, width)
    check_measured(path, folder.weight_files, "the mean outputs of the heads", _SCRIPT)
    return means


def fisher_rows(fisher: np.ndarray, grid: HeadGrid) -> list[list]:
    """Return the cells of Fisher information within layers, a pair of heads in each row."""
    return [[*key, float(fisher[place])] for key, place in fisher_pairs(grid)]


def mean_rows(means: np.ndarray, grid: HeadGrid) -> list[list]:
    """Return the cells of mean outputs [heads, e]."""
    keys = _dimensions(grid, means.shape[1])
    return [[*key, value] for key, value in zip(keys, means.flatten().tolist(), strict=True)]


def fisher_pairs(grid: HeadGrid) -> list[tuple[tuple, tuple[int, int]]]:
    """Return kind, layer and both heads of every pair of a layer, and its place in F."""
    return [
        ((kind, layer, head, other), (span.start + head, span.start + other))
        for kind, layer, span in grid.layers()
        for head, other in product(range(span.stop - span.start), repeat=2)
    ]


def _dimensions(grid: HeadGrid, width: int) -> list[tuple]:
    return [(*head, dimension) for head, dimension in product(grid.heads(), range(width))]


def _read(path: Path, part: str, keys: list[tuple]) -> np.ndarray:
    """Return a finite number for each key. Raises UserError for other rows or another order."""
    return head_values.read_in_order(path, COLUMNS[part], keys, _SCRIPT)
