"""The Hard Concrete distribution of a gate in [0, 1], in closed form.

u is uniform in (0, 1), log α the location, τ the temperature, (γ, ζ) the ends of the stretch.
s = sigmoid((ln u − ln(1 − u) + log α) / τ) is Concrete. g = s · (ζ − γ) + γ, cut to [0, 1], is Hard
Concrete. Source: Louizos et al. 2018, section 2.2, and Voita et al. 2019, section 6.1.
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HardConcrete:
    """A family of gates. A larger `log_alpha` opens a gate further."""

    temperature: float
    low: float = -0.1  # γ, below 0
    high: float = 1.1  # ζ, above 1

    @property
    def zero_shift(self) -> float:
        """τ ln(−γ / ζ): at this log α a gate is 0 with probability one half."""
        return self.temperature * math.log(-self.low / self.high)

    @property
    def one_shift(self) -> float:
        """τ ln((1 − γ) / (ζ − 1)): at this log α a gate is 1 with probability one half."""
        return self.temperature * math.log((1 - self.low) / (self.high - 1))

    def p_zero(self, log_alpha: np.ndarray | float) -> np.ndarray:
        """Probability that a gate is exactly 0, of the same shape as log α."""
        return _sigmoid(self.zero_shift - np.asarray(log_alpha, dtype=float))

    def p_one(self, log_alpha: np.ndarray | float) -> np.ndarray:
        """Probability that a gate is exactly 1, of the same shape as log α."""
        return _sigmoid(np.asarray(log_alpha, dtype=float) - self.one_shift)

    def p_open(self, log_alpha: np.ndarray | float) -> np.ndarray:
        """Probability that a gate is not 0. Their sum is the expected number of open heads."""
        return _sigmoid(np.asarray(log_alpha, dtype=float) - self.zero_shift)

    def concrete_density(self, value: np.ndarray | float, log_alpha: float) -> np.ndarray:
        """Density of s, before stretch and cut, at values inside (0, 1)."""
        value = np.asarray(value, dtype=float)
        below = _sigmoid(self.temperature * np.log(value / (1 - value)) - log_alpha)
        return below * (1 - below) * self.temperature / (value * (1 - value))

    def hard_density(self, value: np.ndarray | float, log_alpha: float) -> np.ndarray:
        """Density of a gate at values inside (0, 1). The other probability lies on 0 and on 1."""
        width = self.high - self.low
        stretched = (np.asarray(value, dtype=float) - self.low) / width
        return self.concrete_density(stretched, log_alpha) / width

    def at_test(self, log_alpha: np.ndarray | float) -> np.ndarray:
        """Return the gate after training: 1 if 1 is likelier, else 0 (Voita et al., footnote 7)."""
        return (self.p_one(log_alpha) > self.p_zero(log_alpha)).astype(float)


def _sigmoid(value: np.ndarray | float) -> np.ndarray:
    # Of −|x|, so that no exponential overflows.
    small = np.exp(-np.abs(value))
    return np.where(np.asarray(value) >= 0, 1, small) / (1 + small)
