"""Statistics of the project: tests over seeds, correlations over heads, many tests at once."""

import math

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from headcount.base.errors import UserError

Z = 1.959963984540054  # 97.5 % quantile of the normal distribution
ALPHA = 0.05  # significance level
_SHUFFLES = 9999
_RESAMPLES = 1000


def paired_t(differences: np.ndarray) -> tuple[float, float, float]:
    """Return Student's t-test of paired differences: 95 % interval of the mean and two-sided p.

    All are missing for fewer than two known differences. Equal differences have no spread to test
    against: p is 1 if they are 0, else missing.
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[~np.isnan(values)]
    if values.size < 2:
        return (math.nan,) * 3
    if np.ptp(values) == 0:
        return values[0], values[0], math.nan if values[0] else 1.0
    degrees, mean = values.size - 1, float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    reach = float(stdtrit(degrees, 0.975)) * error
    return mean - reach, mean + reach, 2 * float(stdtr(degrees, -abs(mean / error)))


def wilson(hits: float, trials: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    middle = (hits + Z * Z / 2) / (trials + Z * Z)
    reach = Z / (trials + Z * Z) * math.sqrt(hits * (trials - hits) / trials + Z * Z / 4)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def inequality(heads: np.ndarray, name: str) -> np.ndarray:
    """Return a statistic of each row of heads. `largest` and `top`: over the mean, the sum."""
    count, mean, ordered = heads.shape[1], heads.mean(axis=1), np.sort(heads)
    return {
        "variance": heads.var(axis=1),
        "mean": mean,
        "cv": heads.std(axis=1) / mean,
        "gini": ordered @ (2 * np.arange(1, count + 1) - count - 1) / (count**2 * mean),
        "largest": ordered[:, -1] / mean,
        "top": ordered[:, -max(1, round(count / 8)) :].sum(axis=1) / (count * mean),
    }[name]


def mcnemar(first_only: int, second_only: int) -> float:
    """Return McNemar's exact two-sided p from trials that only one of two systems gets right."""
    from scipy import stats  # takes half a second

    both = first_only + second_only
    return float(stats.binomtest(first_only, both).pvalue) if both else 1.0


def ranks_within(values: pd.Series, blocks: pd.Series) -> pd.Series:
    """Return ranks of values within their block, less the mean rank of the block."""
    ranks = values.groupby(blocks).rank()
    return ranks - ranks.groupby(blocks).transform("mean")


def bootstrap_correlation(first: np.ndarray, second: np.ndarray, ranks: bool) -> tuple[float, ...]:
    """Return the 95 % bootstrap interval of Pearson's correlation, or with `ranks` Spearman's."""
    draws = np.random.default_rng(12345).integers(len(first), size=(_RESAMPLES, len(first)))
    sides = [side[draws] for side in (first, second)]
    if ranks:
        sides = [pd.DataFrame(side).rank(axis=1).to_numpy() for side in sides]
    one, other = (side - side.mean(1, keepdims=True) for side in sides)
    sizes = np.sqrt((one**2).sum(1) * (other**2).sum(1))
    # Rounding leaves a little spread in a row of equal values.
    known = sizes > 1e-12 * max(1.0, float(sizes.max()))
    values = (one * other).sum(1)[known] / sizes[known]
    if not values.size:
        return math.nan, math.nan
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def correlate(first: np.ndarray, second: np.ndarray, ranks: bool) -> tuple[float, ...]:
    """Return Pearson's (`ranks`: Spearman's) correlation, bootstrap interval and permutation p."""
    given = [np.asarray(values, dtype=np.float64) for values in (first, second)]
    sides = [pd.Series(values).rank().to_numpy() for values in given] if ranks else given
    if any(np.ptp(side) == 0 for side in sides):
        return (math.nan,) * 4
    one, other = ((side - side.mean()) / np.linalg.norm(side - side.mean()) for side in sides)
    p = shuffled_p(other, one, np.zeros(len(one)), _SHUFFLES)
    return float(np.clip(one @ other, -1, 1)), *bootstrap_correlation(*given, ranks), p


def shuffled_p(first: np.ndarray, second: np.ndarray, blocks: np.ndarray, count: int) -> float:
    """Return the two-sided permutation p that two statistics of the same heads are unrelated.

    Heads are shuffled within blocks `count` times. The statistic is the sum of products, less its
    mean. Of ranks this tests Spearman's correlation.
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
    """Return p values corrected for several tests by Holm's method (1979)."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * (values.size - np.arange(values.size))
    return np.minimum(np.maximum.accumulate(scaled), 1)[np.argsort(order)]


def speedups(
    table: pd.DataFrame, raw: pd.DataFrame, setup: list[str], whole: str | int
) -> pd.DataFrame:
    """Return the table of models with `speedup`, its `speed` over the speed of the model `whole`.

    Low and high are 95 % t intervals of the mean logarithm over the repeats in `raw`.
    """
    of_whole = table[table["model"] == whole].set_index(setup)["speed"].rename("whole")
    reference = table.join(of_whole, on=setup)["whole"]
    if reference.isna().any():
        where = dict(table.loc[reference.isna(), setup].iloc[0])
        raise UserError(f"times of {where}: expected {whole} among the models, found none")
    logs = raw.assign(log=np.log(raw["seconds"] / raw["steps"]))
    by_model = logs.pivot(index=[*setup, "repeat"], columns="model", values="log")
    gains = by_model.drop(columns=whole).rsub(by_model[whole], axis=0).stack()
    rows = [
        (*key, *np.exp(paired_t(values)[:2]))
        for key, values in gains.groupby(level=[*setup, "model"], sort=False)
    ]
    ends = pd.DataFrame(rows, columns=[*setup, "model", "speedup_low", "speedup_high"])
    return table.assign(speedup=table["speed"] / reference).merge(ends, "left", [*setup, "model"])
