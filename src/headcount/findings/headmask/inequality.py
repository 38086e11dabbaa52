"""How unequal the heads of one model are: the spread of their importances."""

import math
from typing import NamedTuple

import numpy as np

from headcount.base.errors import UserError


class Spread(NamedTuple):
    """Mean, variance, and measures without a unit: the larger, the less equal the heads.

    The latter are NaN for importances with a sign, if one is below 0.
    """

    mean: float
    variance: float  # of the heads at hand, not of a population: ddof 0
    cv: float  # standard deviation / mean; 0 when all heads are equal
    gini: float  # 0 when all heads are equal, (n − 1) / n when one head has everything
    max_over_mean: float  # 1 when all heads are equal, n when one head has everything


def spread(importances: np.ndarray) -> Spread:
    """Spread of the importances [heads] of one model.

    Raises UserError if there are none, one is not finite, or all are 0.
    """
    values = np.sort(np.asarray(importances, dtype=np.float64))
    if not values.size or not np.isfinite(values).all() or not values.any():
        raise UserError(
            f"importances: expected finite numbers, not all 0, found "
            f"{values[:3].tolist()}… ({values.size}); make the importance file again"
        )
    mean, variance = float(values.mean()), float(values.var())
    if values[0] < 0:
        return Spread(mean, variance, math.nan, math.nan, math.nan)
    # Gini from sorted values: Σ (2i − n − 1) x_i / (n Σ x), i counted from 1.
    places = 2 * np.arange(1, values.size + 1) - values.size - 1
    gini = float(places @ values / (values.size * values.sum()))
    return Spread(mean, variance, math.sqrt(variance) / mean, gini, float(values[-1]) / mean)
