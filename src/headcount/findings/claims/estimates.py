"""Numbers with their intervals and p: of trainings, of sums, of ranks, and of BLEU changes."""

from collections.abc import Mapping, Sequence
from math import erfc, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from headcount.findings.significance import ALPHA, Z, paired_t, ranks_within, shuffled_p

EFFECT = ["delta", "delta_low", "delta_high", "p"]
"""Columns of a BLEU change: its size, its interval, and p that it is 0."""

_SMALLEST_P = 1 / 1001  # of 1,000 resamples
_SHUFFLES = 9999


class Estimate(NamedTuple):
    """A number with its 95 % interval; p, two-sided, that it is 0."""

    value: float
    low: float
    high: float
    p: float


def over_trainings(values: pd.Series) -> Estimate:
    """Mean over trainings, its t interval, and p of the t-test. Two values or more."""
    numbers = values.to_numpy(dtype=float)
    return Estimate(float(numbers.mean()), *paired_t(numbers))


def combined(weights: Sequence[float], terms: Sequence[Sequence[float]]) -> Estimate:
    """Weighted sum of numbers that have intervals (value, low, high) from the same sentences.

    How the terms hang together is not known, so the half widths are added: no interval of the sum
    is wider, since a standard deviation of a sum is at most the sum of theirs.
    """
    values = np.asarray(terms, dtype=float)
    scaled = np.asarray(weights, dtype=float)[:, None] * values
    value = float(scaled[:, 0].sum())
    low, high = (float(edge(scaled[:, 1], scaled[:, 2]).sum()) for edge in (np.minimum, np.maximum))
    return Estimate(value, low, high, p_of_interval(value, low, high))


def p_of_interval(value: float, low: float, high: float) -> float:
    """Two-sided p that a number with this 95 % bootstrap interval is 0, if its error is normal.

    The half of the interval on the side of 0 says how large the error is. Not below what as many
    resamples can show; NaN without an interval.
    """
    reach = value - low if value > 0 else high - value
    if isnan(reach):
        return nan
    if reach <= 0:
        return 1.0 if value == 0 else _SMALLEST_P
    return max(erfc(abs(value) / (reach / Z) / sqrt(2)), _SMALLEST_P)


def with_error(value: float, error: float) -> Estimate:
    """A number with the interval and p that its standard error gives it, if that is normal."""
    p = erfc(abs(value) / error / sqrt(2)) if error else float(value == 0)
    return Estimate(value, value - Z * error, value + Z * error, p)


def change_of(row: Mapping[str, float], tested: bool) -> list[float]:
    """A BLEU change and its interval; with p only if the verdict rests on a test of it."""
    return [row[name] for name in EFFECT[: 3 + tested]]


def small_loss(row: Mapping[str, float], limit: float, bound: float) -> bool:
    """Whether a BLEU change costs less than `limit`, or is no significant loss.

    Its interval must end above −`bound`: of few sentences no loss is significant.
    """
    unnoticed = row["delta"] > -limit or row["delta"] >= 0 or row["p"] >= ALPHA
    return bool(unnoticed and row["delta_low"] > -bound)


def welch(first: pd.Series, second: pd.Series) -> Estimate:
    """Difference of two means, first minus second, by Welch's t; two values or more of each."""
    sides = ((first, 1), (second, -1))
    return sum_of_means(
        [(sign * float(side.mean()), float(side.sem()) ** 2, len(side)) for side, sign in sides]
    )


def sum_of_means(means: Sequence[tuple[float, float, int]]) -> Estimate:
    """Sum of independent means, by Welch's t. Of each: its value, squared error, and its number.

    Without any error there is nothing to test against: p is then 1 if the sum is 0, else 0.
    """
    value, squares = sum(mean for mean, _, _ in means), [square for _, square, _ in means]
    error = sqrt(sum(squares))
    if not error:
        return Estimate(value, value, value, float(value == 0))
    degrees = sum(squares) ** 2 / sum(square**2 / (n - 1) for _, square, n in means)
    reach = error * float(stdtrit(degrees, 0.975))
    p = 2 * float(stdtr(degrees, -abs(value / error)))
    return Estimate(value, value - reach, value + reach, p)


def ranks_agree(first: pd.Series, second: pd.Series, blocks: pd.Series) -> tuple[pd.Series, float]:
    """Spearman's correlation in each block, and p of all together by shuffling within blocks.

    0 where either side of a block has one value alone.
    """
    sides = []
    for values in (first, second):
        apart = ranks_within(values, blocks)
        norms = np.sqrt((apart**2).groupby(blocks).transform("sum"))
        sides.append(apart / norms.where(norms > 0, 1))
    p = shuffled_p(*(side.to_numpy() for side in sides), blocks.to_numpy(str), _SHUFFLES)
    return (sides[0] * sides[1]).groupby(blocks).sum(), p
