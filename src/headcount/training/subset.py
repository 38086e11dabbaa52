"""Exactly K heads that stay, learnt: relaxed draws of K heads, sharper from update to update.

Source: Li, Cotterell and Sachan 2021, sections 3 and 4 (differentiable subset pruning).
"""

import math

import numpy as np
import torch
from torch import Tensor

from headcount.base.random_streams import Stream
from headcount.base.ranking import rank_heads
from headcount.base.settings.train import SubsetSettings
from headcount.training.learnt_mask import LearntMask

TEMPERATURE_END = 1e-8
COOLING = 0.25  # share of the updates in which the temperature falls
_TINY = torch.finfo(torch.float64).tiny  # so that the logarithm of the rest is finite


class HeadSubset(LearntMask):
    """Exactly K heads of a scope: w ranks them, and each update draws K by w with Gumbel noise.

    A draw is relaxed: multipliers from 0 to hardly above 1, whose sum is K, which tend to K ones as
    the temperature falls. At test time the K largest w stay, equal ones in flat order.
    """

    name = "w"
    stream = Stream.SUBSET
    settings: SubsetSettings

    def first(self) -> np.ndarray:
        """Return w [heads of the scope] at the start: Glorot-uniform, as one row of weights."""
        limit = math.sqrt(6 / (1 + len(self.gated)))
        return self._uniform(0, -limit, limit).numpy()

    def temperature(self) -> float:
        """Return τ of the current update: τ₀ (τ₁/τ₀)^(s/S) for s from 0 to S, then τ₁."""
        start = self.settings.temperature_start
        share = max(0, self.update - 1) / (COOLING * self.train.updates)
        return start * (TEMPERATURE_END / start) ** min(share, 1.0)

    def sample(self, uniform: Tensor) -> Tensor:
        """Return multipliers [heads of the scope] for uniform draws. Their sum is K.

        Σ_j p_j over j = 1 … K, with p_j = softmax(r_j / τ), r_1 = w − ln(−ln u) and
        r_(j+1) = r_j + ln(1 − p_j): K draws without repetition, one after another.
        """
        scores = self.learnt - (-uniform.log()).log()
        total = torch.zeros_like(scores)
        for _ in range(self.run.heads):
            chances = torch.softmax(scores / self.temperature(), 0)
            total = total + chances
            scores = scores + (1 - chances).clamp_min(_TINY).log()
        return total

    def gates_of(self, learnt: np.ndarray) -> np.ndarray:
        """Return 1 for the K heads that stay, 0 for the others, [heads of the scope]."""
        gates = np.zeros(len(self.gated))
        gates[rank_heads(learnt)[: self.run.heads]] = 1
        return gates
