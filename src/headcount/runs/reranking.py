"""Importance of the heads that are left, measured on the same sentences as heads go."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer
from headcount.runs.importance import measure_importance, normalise_layers
from headcount.runs.importance_run import label_smoothing, read_halves


@dataclass(frozen=True)
class Measure:
    """A text, and how importance is measured on it."""

    text: ParallelText
    settings: ImportanceSettings
    smoothing: float
    by_layer: bool  # divided by the L2 norm of each layer and kind

    @classmethod
    def read(
        cls, model: Path, bpe: Path, settings: ImportanceSettings, ablation: AblationSettings
    ) -> "Measure":
        """The sentences that `importance` draws, both halves; `model` is a folder."""
        first, second = read_halves(bpe, settings)
        text = ParallelText(first.src + second.src, first.tgt + second.tgt)
        smoothing = label_smoothing(model) if settings.loss == "smoothed" else 0.0
        by_layer = "layer_l2" in (settings.normalise, ablation.normalise)
        return cls(text, settings, smoothing, by_layer)

    def of(self, model: Transformer, silent: Sequence[int] = ()) -> np.ndarray:
        """Importance of every head that is left, [heads] in flat order; NaN for silent ones."""
        kept = torch.ones(model.grid.size)
        kept[list(silent)] = 0
        smaller = remove_heads(model, kept) if len(silent) else model
        values = np.full(model.grid.size, np.nan)
        if smaller.grid.size:
            found = measure_importance(smaller, self.text, self.settings, self.smoothing)
            values[kept.numpy() > 0] = (
                normalise_layers(found, smaller.grid) if self.by_layer else found
            )
        return values
