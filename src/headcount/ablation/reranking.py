"""Importance of the heads that are left, measured on the same sentences as heads go."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headcount.base.addresses import HeadGrid
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.heads.importance import measure_importance, normalise_layers
from headcount.heads.importance_run import read_halves
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


@dataclass(frozen=True)
class Measure:
    """A text, and how importance is measured on it."""

    text: ParallelText
    settings: ImportanceSettings
    smoothing: float

    @classmethod
    def read(cls, folder: ModelFolder, pair: PairFolder, settings: ImportanceSettings) -> "Measure":
        """The sentences that `importance` draws, both halves, and the loss it differentiates."""
        first, second = read_halves(pair, settings)
        text = ParallelText(first.src + second.src, first.tgt + second.tgt)
        smoothing = folder.label_smoothing() if settings.loss == "smoothed" else 0.0
        return cls(text, settings, smoothing)

    def of(self, model: Transformer, silent: Sequence[int] = ()) -> np.ndarray:
        """Importance of every head, [heads] in flat order; of silent ones, which are not there, 0.

        Not normalised.
        """
        kept = torch.ones(model.grid.size)
        kept[list(silent)] = 0
        values = np.zeros(model.grid.size)
        if kept.any():
            smaller = remove_heads(model, kept) if len(silent) else model
            found = measure_importance(smaller, self.text, self.settings, self.smoothing)
            values[kept.numpy() > 0] = found
        return values


def for_ranking(values: np.ndarray, grid: HeadGrid, settings: AblationSettings) -> np.ndarray:
    """Importance [heads] as `ablation.normalise` wants it before heads are compared."""
    return normalise_layers(values, grid) if settings.normalise == "layer_l2" else values
