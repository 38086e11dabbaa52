"""What a verdict on a claim is, and how numbers of several models become one.

A claim about a trained model (`agree`) is decided for each model, test set or sweep by what
resampled sentences say, and has a verdict if all of them have the same: with one training it is a
verdict on that model, and column `seeds` says so. A claim that compares ways of training
(`contrasts`, `of_trainings`) is decided by a t interval over trainings and has a verdict from
`MIN_SEEDS` seeds on: sentences cannot tell how far two trainings differ by chance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import erfc, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from headcount.findings.significance import Z, paired_t

HOLDS, FAILS, UNDECIDED, NOT_APPLICABLE = (
    "holds",
    "does not hold",
    "undecided",
    "not applicable",
)
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_APPLICABLE)
ALPHA = 0.05
MIN_SEEDS = 3
NO_RUN = "no such run"
_SMALLEST_P = 1 / 1001  # of 1,000 resamples
UNIT = ["experiment", "pair", "seed"]
"""What tells trainings apart whose runs are compared with each other."""

EFFECT = ["delta", "delta_low", "delta_high", "p"]
"""Columns of a BLEU change: its size, its interval, and p that it is 0."""


@dataclass(frozen=True)
class Decision:
    """The verdict on one claim, or on one model's part in it, and the number behind it."""

    verdict: str  # one of `VERDICTS`
    reason: str  # what decided, or why nothing is decided
    value: float = nan  # the claim's statistic; NaN where there is none
    low: float = nan  # its 95 % interval
    high: float = nan
    p: float = nan  # two-sided, of what the verdict rests on; NaN if on no test
    seeds: int = 0  # trainings behind it


class Estimate(NamedTuple):
    """A number with its 95 % interval; p, two-sided, that it is 0."""

    value: float
    low: float
    high: float
    p: float


def undecided(reason: str, seeds: int = 0) -> Decision:
    """No verdict, and why."""
    return Decision(UNDECIDED, reason, seeds=seeds)


def judge(
    holds: bool, fails: bool, reason: str, found: Sequence[float], seeds: int = 1
) -> Decision:
    """A verdict; undecided if neither or both are true. `found`: value, low, high, p, or fewer."""
    verdict = UNDECIDED if holds == fails else HOLDS if holds else FAILS
    reason = f"between the limits: {reason}" if verdict == UNDECIDED else reason
    return Decision(verdict, reason, *found, *[nan] * (4 - len(found)), seeds=seeds)


def agree(parts: Iterable[Decision]) -> Decision:
    """One verdict from those on each model: theirs if all have the same, else undecided.

    Value is the mean, the interval covers all of theirs, and p is the largest: so the claim is
    tested of every model. Parts to which the claim does not apply are left out, if there are
    others; without any part no such run was made.
    """
    given = list(parts)
    decided = [part for part in given if part.verdict != NOT_APPLICABLE] or given
    if not decided:
        return undecided(NO_RUN)
    counts = {name: sum(part.verdict == name for part in decided) for name in VERDICTS}
    told = {name: number for name, number in counts.items() if number}
    reasons = "; ".join(dict.fromkeys(part.reason for part in decided))
    verdict = next(iter(told)) if len(told) == 1 else UNDECIDED
    if len(told) > 1:
        split = ", ".join(f"{name} in {number}" for name, number in told.items())
        reasons = f"of {len(decided)}: {split} ({reasons})"
    numbers = np.array([[part.value, part.low, part.high, part.p] for part in decided])
    known = pd.DataFrame(numbers, columns=["value", "low", "high", "p"])
    return Decision(
        verdict,
        reasons,
        float(known["value"].mean()),
        float(known["low"].min()),
        float(known["high"].max()),
        float(known["p"].max()),
        sum(part.seeds for part in decided),
    )


def by_model(
    rows: pd.DataFrame, keys: list[str], decide: Callable[[pd.DataFrame], Decision]
) -> Decision:
    """`agree` on the decisions about each model: the rows that share the keys.

    `seeds` counts trainings: a model on two test sets is one.
    """
    parts = [decide(found) for _, found in rows.groupby(keys, sort=False)]
    trainings = rows[[name for name in UNIT if name in rows]].drop_duplicates()
    return replace(agree(parts), seeds=len(trainings))


def contrasts(found: Mapping[str, pd.Series], shown: Callable[[float], float] = float) -> Decision:
    """Whether every contrast is below 0 over trainings, in every pair.

    A contrast has a difference for each training, by experiment, pair and seed. Fails if one is
    above 0 in some pair, after Bonferroni's correction for their number. Pairs with fewer seeds
    than `MIN_SEEDS` decide nothing. Value and interval are of the contrast that is largest; `shown`
    says what they are shown as.
    """
    estimates, few = {}, {}
    for name, differences in found.items():
        for pair, of_pair in differences.dropna().groupby("pair", sort=False):
            place = f"{name}, {pair}"
            if len(of_pair) < MIN_SEEDS:
                few[place] = of_pair
            else:
                estimates[place] = over_trainings(of_pair)
    if not estimates:
        return _too_few(few, shown)
    above = [each.p * len(estimates) for each in estimates.values() if each.low > 0]
    worst = max(estimates, key=lambda place: estimates[place].value)
    p = min(1.0, min(above)) if above else max(each.p for each in estimates.values())
    holds = all(each.high < 0 for each in estimates.values())
    seeds = max(each.groupby("pair").size().sum() for each in found.values())
    numbers = (*map(shown, estimates[worst][:3]), p)
    return judge(holds, bool(above) and p < ALPHA, f"decided by: {worst}", numbers, int(seeds))


def _too_few(few: Mapping[str, pd.Series], shown: Callable[[float], float]) -> Decision:
    """Undecided, with the largest mean of what there is."""
    if not few:
        return undecided(NO_RUN)
    worst = max(few, key=lambda place: few[place].mean())
    seeds = max(map(len, few.values()))
    value = shown(float(few[worst].mean()))
    return Decision(UNDECIDED, f"{few_seeds(seeds)}; {worst}", value, seeds=seeds)


def few_seeds(seeds: int) -> str:
    """Why a claim about trainings is undecided with so few."""
    word = "one seed" if seeds == 1 else f"{seeds} seeds"
    return f"{word}: a claim about trainings needs {MIN_SEEDS}"


def too_few(values: pd.Series) -> Decision:
    """Undecided for so few trainings, with the mean of what they have; no such run without any."""
    if values.empty:
        return undecided(NO_RUN)
    return Decision(UNDECIDED, few_seeds(len(values)), values.mean(), seeds=len(values))


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
    sizes = [len(first), len(second)]
    parts = [float(side.var(ddof=1)) / len(side) for side in (first, second)]
    value, error = float(first.mean() - second.mean()), sqrt(sum(parts))
    if not error:
        return Estimate(value, value, value, float(value == 0))
    degrees = sum(parts) ** 2 / sum(p * p / (n - 1) for p, n in zip(parts, sizes, strict=True))
    reach = error * float(stdtrit(degrees, 0.975))
    p = 2 * float(stdtr(degrees, -abs(value / error)))
    return Estimate(value, value - reach, value + reach, p)
