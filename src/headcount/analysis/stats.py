"""Statistics over seeds and heads: paired t-test, t interval, correlations, many tests at once.

scipy.stats has Wilson's interval, McNemar's test, Spearman's correlation, the permutation test and
the bootstrap as well. They stay here: its last digits and its draws are others, and tables print
all digits.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit  # scipy.stats takes four times as long to load

from headcount.base.errors import UserError

Z = 1.959963984540054  # 97.5 % quantile of the normal distribution
ALPHA = 0.05
"""Below this p something is there."""

_SHUFFLES = 9999
_RESAMPLES = 1000


class PairedT(NamedTuple):
    """Mean difference of two systems trained with the same seeds, tested against 0."""

    low: float  # 95 % t interval of the mean
    high: float
    p: float  # two-sided


def paired_t(differences: np.ndarray) -> PairedT:
    """Student's t-test over paired differences, one per seed.

    Raises UserError for fewer than two. Equal differences have no spread to test against: p is
    then 1 if they are 0, else 0.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size < 2:
        raise UserError(f"paired t-test: expected two differences or more, found {values.size}")
    degrees, mean = values.size - 1, float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    reach = float(stdtrit(degrees, 0.975)) * error
    p = 2 * float(stdtr(degrees, -abs(mean / error))) if error else float(mean == 0)
    return PairedT(mean - reach, mean + reach, p)


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Rank correlation, −1 to 1; equal values share the mean of their ranks.

    NaN if either has no two different values. Raises UserError for unequal lengths.
    """
    if len(first) != len(second):
        raise UserError(
            f"rank correlation: expected as many values on both sides, found {len(first)} and "
            f"{len(second)}; are these files of one model?"
        )
    ranks = [pd.Series(values).rank() for values in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return math.nan
    return float(np.corrcoef(*ranks)[0, 1])


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """95 % interval of a share: Wilson's, which stays within 0 and 1."""
    square = Z * Z
    middle = (hits + square / 2) / (trials + square)
    reach = Z / (trials + square) * math.sqrt(hits * (trials - hits) / trials + square / 4)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def mcnemar(first_only: int, second_only: int) -> float:
    """Two-sided exact p that two systems are equally often right, by where only one is right.

    The counts are of trials that one of them alone gets right; without any, p is 1.
    """
    both, fewer = first_only + second_only, min(first_only, second_only)
    log_half = both * math.log(2)
    terms = (
        math.lgamma(both + 1) - math.lgamma(k + 1) - math.lgamma(both - k + 1) - log_half
        for k in range(fewer + 1)
    )
    return min(1.0, 2 * sum(map(math.exp, terms)))


def ranks_within(values: pd.Series, blocks: pd.Series) -> pd.Series:
    """Ranks of values among those of their block, less the mean of these; equal values share it."""
    ranks = values.groupby(blocks).rank()
    return ranks - ranks.groupby(blocks).transform("mean")


def bootstrap_correlation(
    first: np.ndarray, second: np.ndarray, ranks: bool
) -> tuple[float, float]:
    """95 % bootstrap interval of Pearson's correlation, or with `ranks` Spearman's.

    Pairs of values are drawn, and ranked anew. Draws in which either side has one value alone are
    passed over; NaN if all are.
    """
    draws = np.random.default_rng(12345).integers(len(first), size=(_RESAMPLES, len(first)))
    sides = [side[draws] for side in (first, second)]
    if ranks:
        sides = [pd.DataFrame(side).rank(axis=1).to_numpy() for side in sides]
    one, other = (side - side.mean(1, keepdims=True) for side in sides)
    sizes = np.sqrt((one**2).sum(1) * (other**2).sum(1))
    # What rounding leaves of a row of equal values is no spread.
    known = sizes > 1e-12 * max(1.0, float(sizes.max()))
    found = (one * other).sum(1)[known] / sizes[known]
    if not found.size:
        return math.nan, math.nan
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


class Correlation(NamedTuple):
    """Correlation of two statistics of the same heads."""

    r: float  # −1 to 1
    low: float  # 95 % interval, by bootstrap over the heads
    high: float
    p: float  # two-sided: how often shuffled heads correlate as strongly


def correlate(first: np.ndarray, second: np.ndarray, ranks: bool) -> Correlation:
    """Pearson's correlation, or with `ranks` Spearman's; all NaN if either side is constant.

    Effects of heads are far from normal, a few are much larger than all others, so that Fisher's z
    would give much too narrow intervals. Raises UserError for unequal lengths or fewer than four
    heads.
    """
    if len(first) != len(second) or len(first) < 4:
        raise UserError(
            f"correlation: expected at least four heads, as many on both sides, found "
            f"{len(first)} and {len(second)}"
        )
    given = [np.asarray(values, dtype=np.float64) for values in (first, second)]
    sides = [pd.Series(values).rank().to_numpy() for values in given] if ranks else given
    if any(np.ptp(side) == 0 for side in sides):
        return Correlation(*[math.nan] * 4)
    one, other = ((side - side.mean()) / np.linalg.norm(side - side.mean()) for side in sides)
    r = float(np.clip(one @ other, -1, 1))
    generator = np.random.default_rng(1)
    shuffled = generator.permuted(np.tile(other, (_SHUFFLES, 1)), axis=1) @ one
    p = (1 + int((np.abs(shuffled) >= abs(r) - 1e-12).sum())) / (1 + _SHUFFLES)
    return Correlation(r, *bootstrap_correlation(*given, ranks), p)


def shuffled_p(first: np.ndarray, second: np.ndarray, blocks: np.ndarray, count: int) -> float:
    """Two-sided p that two statistics of the same heads have nothing to do with each other.

    The share of `count` shufflings within blocks, and of no shuffling, in which the sum of products
    is as far from what shufflings give on average. Of ranks that tests Spearman's correlation.
    """
    orders = np.tile(np.arange(len(blocks)), (1 + count, 1))
    generator, expected = np.random.default_rng(1), 0.0
    for block in np.unique(blocks):
        places = np.flatnonzero(blocks == block)
        orders[1:, places] = generator.permuted(orders[1:, places], axis=1)
        expected += first[places].mean() * second[places].sum()  # blocks differ in their means
    apart = np.abs(first[orders] @ second - expected)
    return float((apart >= apart[0] - 1e-9).mean())


def holm(p_values: np.ndarray) -> np.ndarray:
    """P-values corrected for being several: below α, the chance of any false finding is below α.

    Source: Holm 1979: the k-th smallest of n times n − k + 1, never below the one before.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * (values.size - np.arange(values.size))
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected


class Overlap(NamedTuple):
    """Two sets chosen from the same things, and how many things are in both."""

    things: int
    first: int
    second: int
    both: int

    @property
    def expected(self) -> float:
        """Mean of `both` if the second set is drawn at random (hypergeometric)."""
        return self.first * self.second / self.things


def overlap_p(overlaps: Sequence[Overlap]) -> float:
    """Exact one-sided p that sets have as much in common, all overlaps together, by chance.

    It is the chance that the second sets, drawn at random and each on its own, share at least as
    much with the first ones: a tail of the hypergeometric distribution, of several overlaps of the
    distribution of their sum.
    """
    chances = np.ones(1)
    for things, first, second, _ in overlaps:
        ways = [
            math.comb(first, both) * math.comb(things - first, second - both)
            for both in range(min(first, second) + 1)
        ]
        chances = np.convolve(chances, [way / math.comb(things, second) for way in ways])
    return min(1.0, float(chances[sum(each.both for each in overlaps) :].sum()))


def drawn_p(drawn: Sequence[Sequence[int]], total: int) -> float:
    """Exact one-sided p: the chance that numbers drawn at random sum to `total` or more.

    One is drawn from each sequence of counts, every one of them as likely as the others.
    """
    chances = np.ones(1)
    for counts in drawn:
        chances = np.convolve(chances, np.bincount(counts) / len(counts))
    return min(1.0, float(chances[total:].sum()))
