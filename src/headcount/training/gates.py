"""Hard Concrete gates on heads: drawn anew for every update, learnt, and read off at the end.

Source: Voita et al. 2019, section 6.1. The objective is the loss per target token plus
λ · (expected number of open heads), so the penalty weight λ is in nats per target token and head.
"""

import numpy as np
import torch
from torch import Tensor

from headcount.base.hard_concrete import HardConcrete
from headcount.base.random_streams import Stream
from headcount.base.settings.train import GatesSettings
from headcount.training.learnt_mask import LearntMask
from headcount.training.schedule import learning_rate


class HeadGates(LearntMask):
    """One gate for every head of a scope, whose log α is learnt."""

    name = "log_alpha"
    stream = Stream.GATES
    settings: GatesSettings

    @property
    def family(self) -> HardConcrete:
        """The distribution of the gates."""
        return HardConcrete(self.settings.temperature)

    def first(self) -> np.ndarray:
        """Return log α [gated heads] before the first update."""
        if self.settings.init != "glorot":
            return np.full(len(self.gated), self.settings.init)
        heads = self.grid.heads()
        counts = [self.grid.counts[heads[i].kind][heads[i].layer] for i in self.gated]
        limits = np.sqrt(6 / (2 * np.array(counts, dtype=float)))
        return self._uniform(0, -1, 1).numpy() * limits

    def sample(self, uniform: Tensor) -> Tensor:
        noise = uniform.log() - (-uniform).log1p()
        concrete = torch.sigmoid((noise + self.learnt) / self.family.temperature)
        stretched = concrete * (self.family.high - self.family.low) + self.family.low
        return stretched.clamp(0, 1)

    def p_open(self) -> Tensor:
        return torch.sigmoid(self.learnt - self.family.zero_shift)

    def rate(self) -> float:
        """Return the rate of the settings, or in proportion to the rate of the weights."""
        if self.settings.lr_schedule == "constant":
            return self.settings.lr
        return self.settings.lr * learning_rate(self.train, self.update) / self.train.peak_lr

    def gates_of(self, learnt: np.ndarray) -> np.ndarray:
        return self.family.at_test(learnt)

    def read_off(self, learnt: np.ndarray) -> dict[str, np.ndarray]:
        """Return log α [gated heads] with the probabilities and the gates of test time."""
        chances = {"p_zero": self.family.p_zero(learnt), "p_one": self.family.p_one(learnt)}
        return {self.name: learnt, **chances, "gate": self.gates_of(learnt)}
