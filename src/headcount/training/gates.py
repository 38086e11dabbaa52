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
        """Return gates [gated heads] for uniform draws, differentiable by log α."""
        noise = uniform.log() - (-uniform).log1p()
        concrete = torch.sigmoid((noise + self.learnt) / self.family.temperature)
        stretched = concrete * (self.family.high - self.family.low) + self.family.low
        return stretched.clamp(0, 1)

    def p_open(self) -> Tensor:
        """Return the probability [gated heads] that a gate is not 0, differentiable by log α."""
        return torch.sigmoid(self.learnt - self.family.zero_shift)

    def rate(self) -> float:
        """Return the rate of the settings, or in proportion to the rate of the weights."""
        rate = self.settings.lr
        if self.settings.lr_schedule != "constant":
            rate = rate * learning_rate(self.train, self.update) / self.train.peak_lr
        return rate

    def final(self) -> np.ndarray:
        """Return the gates [gated heads] of test time."""
        return self.family.at_test(self.learnt.detach().numpy())

    def at_end(self) -> dict[str, np.ndarray]:
        """Return the statistics of `read_off` for all heads."""
        statistics = self.read_off(self.learnt.detach().numpy())
        whole = {name: self.of_all_heads(values) for name, values in statistics.items()}
        return whole | super().at_end()

    def read_off(self, log_alpha: np.ndarray) -> dict[str, np.ndarray]:
        """Return log α [gated heads] with the probabilities and the gates of test time."""
        return {
            "log_alpha": log_alpha,
            "p_zero": self.family.p_zero(log_alpha),
            "p_one": self.family.p_one(log_alpha),
            "gate": self.family.at_test(log_alpha),
        }

    def statistics(self) -> list[list[list[float]]]:
        """Return the numbers of `read_off` of each gated head, at the start and validations."""
        columns = [list(self.read_off(log_alpha.numpy()).values()) for log_alpha in self.history]
        return [np.column_stack(of_step).tolist() for of_step in columns]
