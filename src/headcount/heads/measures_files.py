"""Files of more measures: their names, and what reads them. What measures is in more_measures.py.

Apart from that, so that what prunes by them is out of date by no change of a single measure.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headcount.base.addresses import HeadGrid
from headcount.base.head_values import read_head_values
from headcount.heads import fisher, head_outputs
from headcount.store.model_folder import ModelFolder, check_measured

_SCRIPT = "scripts/more_measures.py"
RANKED = ("fisher", "integrated_gradients", "shapley", "mean_ablation", "output_norm")
"""Statistics by which heads can be pruned, the smallest first."""


@dataclass(frozen=True)
class Measured:
    """What a file of measures and those beside it say of a model."""

    values: dict[str, np.ndarray]  # [heads] each, by the names of `RANKED`
    fisher: np.ndarray  # F [heads, heads], 0 between layers


def files_of(measures: Path) -> list[Path]:
    """A file of measures and the two that `write_measures` writes beside it."""
    return [measures, fisher_file(measures), means_file(measures)]


def means_file(measures: Path) -> Path:
    """Where the mean outputs lie, beside a file of measures."""
    return measures.with_name(f"{measures.stem}_means.csv")


def read_measures(path: Path, folder: ModelFolder, grid: HeadGrid) -> Measured:
    """What `write_measures` wrote of the model in a folder.

    Raises UserError if a file is damaged or another model's.
    """
    values = {name: read_head_values(path, name, grid) for name in RANKED}
    information = fisher.read_fisher(fisher_file(path), grid)
    for each in (path, fisher_file(path)):
        check_measured(each, folder.weight_files, "what was measured of the heads", _SCRIPT)
    return Measured(values, information)


def read_mean_outputs(path: Path, folder: ModelFolder) -> np.ndarray:
    """Mean outputs [heads, e] of the model in a folder, from a file that `write_measures` wrote.

    Raises UserError if the file is damaged or another model's.
    """
    settings = folder.settings
    means = head_outputs.read_means(path, settings.grid, settings.head_width)
    check_measured(path, folder.weight_files, "the mean outputs of the heads", _SCRIPT)
    return means


def fisher_file(measures: Path) -> Path:
    """Where the Fisher information lies, beside a file of measures."""
    return measures.with_name(f"{measures.stem}_fisher.csv")
