"""What a verdict on a claim is, and how numbers of several models become one.

A claim about a trained model (`agree`) is decided for each model, test set or sweep by what
resampled sentences say, and has a verdict if all of them have the same: with one training it is a
verdict on that model, and column `seeds` says so. A claim that compares ways of training
(`contrasts`, `between_corpora`) is decided by a t interval over trainings and has a verdict from
`MIN_SEEDS` seeds on: sentences cannot tell how far two trainings differ by chance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np
import pandas as pd

from headcount.findings.claims.estimates import over_trainings, welch
from headcount.findings.significance import ALPHA

HOLDS, FAILS, UNDECIDED, NOT_APPLICABLE = (
    "holds",
    "does not hold",
    "undecided",
    "not applicable",
)
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_APPLICABLE)
MIN_SEEDS = 3
NO_RUN = "no such run"
ALONE = " alone, but not corrected for its paper's claims"
"""In a reason, behind the verdict that a claim would have were it the only one of its paper."""
UNIT = ["experiment", "pair", "seed"]
"""What tells trainings apart whose runs are compared with each other."""

TRIAL = ["seed"]
"""What tells trainings apart that know nothing of each other. Those of one seed on several pairs
draw the same masks, and share sentences where their corpora are parts of one; those of one seed in
several experiments may be the same training, bit for bit."""

TRAINING = ["pair", *TRIAL]
"""What tells trainings of a run apart, each of which counts once."""


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
    collapsed: str = ""  # those of them that collapsed, in words
    tests: int = 1  # how many tests could have decided as the one of `p` did


def undecided(reason: str, seeds: int = 0) -> Decision:
    """No verdict, and why."""
    return Decision(UNDECIDED, reason, seeds=seeds)


def judge(
    holds: bool, fails: bool, reason: str, found: Sequence[float], seeds: int = 1, tests: int = 1
) -> Decision:
    """A verdict; undecided if neither or both are true. `found`: value, low, high, p, or fewer."""
    verdict = UNDECIDED if holds == fails else HOLDS if holds else FAILS
    reason = f"between the limits: {reason}" if verdict == UNDECIDED else reason
    return Decision(verdict, reason, *found, *[nan] * (4 - len(found)), seeds=seeds, tests=tests)


def agree(parts: Iterable[Decision], shown: Callable = np.nanmean) -> Decision:
    """One verdict from those on each model: theirs if all have the same, else undecided.

    `shown` makes one value of theirs. The interval covers all of theirs, and p is the largest: so
    the claim is tested of every model; a part that rests on no test has 1 where they disagree.
    Parts to which the claim does not apply are left out, if there are others; without any part no
    such run was made.
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
    if len(told) > 1 and known["p"].notna().any():
        known["p"] = known["p"].fillna(1.0)
    return Decision(
        verdict,
        reasons,
        float(shown(known["value"])) if known["value"].notna().any() else nan,
        float(known["low"].min()),
        float(known["high"].max()),
        float(known["p"].max()),
        sum(part.seeds for part in decided),
        tests=max(part.tests for part in decided),
    )


def by_model(
    rows: pd.DataFrame,
    keys: list[str],
    decide: Callable[[pd.DataFrame], Decision],
    shown: Callable = np.nanmean,
) -> Decision:
    """`agree` on the decisions about each model: the rows that share the keys.

    Models that differ in the experiment alone count once, by what they agree on, see `TRIAL`.
    `seeds` counts trainings: a model on two test sets is one, and a model to which the claim does
    not apply is none, if there are others.
    """
    own = [name for name in keys if name != "experiment"]
    groups = [of_all for _, of_all in rows.groupby(own, sort=False)]
    parts = [
        agree((decide(found) for _, found in of_all.groupby("experiment", sort=False)), shown)
        for of_all in groups
    ]
    found = agree(parts, shown)
    applies = [
        of_all
        for of_all, part in zip(groups, parts, strict=True)
        if part.verdict != NOT_APPLICABLE or found.verdict == NOT_APPLICABLE
    ]
    trainings = {key for each in applies for key in zip(*map(each.get, TRAINING), strict=True)}
    return replace(found, seeds=len(trainings))


def contrasts(found: Mapping[str, pd.Series], shown: Callable[[float], float] = float) -> Decision:
    """Whether every contrast is below 0 over trainings, in every pair.

    A contrast has a difference for each training, by experiment, pair and seed; those of one pair
    and seed count once, by their mean, see `TRIAL`. Fails if one is above 0 in some pair, after
    Bonferroni's correction for their number, which is `tests`. Pairs none of whose contrasts has
    `MIN_SEEDS` seeds decide nothing; in others a contrast with fewer leaves open whether every one
    is below 0. Value and interval are of the contrast that is largest, where the claim fails of
    those that fail it; `shown` says what they are shown as.
    """
    trials = _trials(found)
    whole = {key: each for key, each in trials.items() if len(each) >= MIN_SEEDS}
    if not whole:
        return _too_few(trials, shown)
    estimates = {key: over_trainings(each) for key, each in whole.items()}
    above = {key: each.p for key, each in estimates.items() if each.low > 0}
    p = min(above.values()) if above else max(each.p for each in estimates.values())
    tests = len(estimates) if above else 1
    fails = bool(above) and p * tests < ALPHA
    pairs = {pair for _, pair in whole}
    lacking = {key: trials[key] for key in trials if key[1] in pairs and key not in whole}
    if lacking and not fails:
        return _too_few(lacking, shown)
    against = [key for key in above if above[key] * tests < ALPHA]
    decides = max(against if fails else estimates, key=lambda key: estimates[key].value)
    seeds = max(sum(len(whole[key]) for key in whole if key[0] == name) for name, _ in whole)
    numbers = (*map(shown, estimates[decides][:3]), p)
    holds = all(each.high < 0 for each in estimates.values())
    return judge(holds, fails, f"decided by: {', '.join(decides)}", numbers, seeds, tests)


def _trials(found: Mapping[str, pd.Series]) -> dict[tuple[str, str], pd.Series]:
    """Differences by seed for each contrast and pair that some contrast has; may be none."""
    known = {
        name: each.dropna().groupby(TRAINING, sort=False).mean() for name, each in found.items()
    }
    pairs = dict.fromkeys(pair for each in known.values() for pair, _ in each.index)
    return {
        (name, pair): each[each.index.get_level_values("pair") == pair]
        for name, each in known.items()
        for pair in pairs
    }


def _too_few(few: Mapping[tuple[str, str], pd.Series], shown: Callable[[float], float]) -> Decision:
    """Undecided: a contrast without any run is named; without one, the largest mean stands."""
    lacking = [key for key, each in few.items() if each.empty]
    if lacking or not few:
        return undecided(": ".join([NO_RUN, *map(", ".join, lacking[:1])]))
    worst = max(few, key=lambda key: few[key].mean())
    seeds = max(map(len, few.values()))
    value = shown(float(few[worst].mean()))
    return Decision(UNDECIDED, f"{few_seeds(seeds)}; {', '.join(worst)}", value, seeds=seeds)


def few_seeds(seeds: int) -> str:
    """Why a claim about trainings is undecided with so few."""
    word = "one seed" if seeds == 1 else f"{seeds} seeds"
    return f"{word}: a claim about trainings needs {MIN_SEEDS}"


def too_few(values: pd.Series) -> Decision:
    """Undecided for so few trainings, with the mean of what they have; no such run without any."""
    if values.empty:
        return undecided(NO_RUN)
    return Decision(UNDECIDED, few_seeds(len(values)), values.mean(), seeds=len(values))


def by_seed(trainings: pd.Series) -> pd.DataFrame:
    """Seeds down, pairs across: pairs with `MIN_SEEDS` seeds at least, the seeds that they share.

    So that no difference between pairs counts as one between seeds. All there are where no pair has
    as many.
    """
    wide = trainings.unstack("pair")
    whole = wide.loc[:, wide.count() >= MIN_SEEDS]
    return whole.dropna() if whole.shape[1] else wide


def between_corpora(trainings: pd.DataFrame, column: str, first: str, second: str) -> Decision:
    """Whether trainings on one corpus have more of a statistic than those on another.

    A training a row, those of several experiments count once; pairs' names begin with those of the
    corpora. Value: difference of the means, first minus second, by Welch's t over `TRIAL`; fewer
    than `MIN_SEEDS` of either decide nothing.
    """
    once = trainings.groupby(TRAINING, sort=False)[column].mean()
    names = once.index.get_level_values("pair").astype(str)
    of = [by_seed(once[names.str.startswith(name)]) for name in (first, second)]
    sides = [rows.mean(axis=1) for rows in of]
    if any(side.empty for side in sides):
        return undecided(f"{NO_RUN} on both {first}… and {second}…")
    count, fewest = int(sum(rows.count().sum() for rows in of)), min(map(len, sides))
    if fewest < MIN_SEEDS:
        value = float(sides[0].mean() - sides[1].mean())
        return Decision(UNDECIDED, few_seeds(fewest), value, seeds=count)
    found = welch(*sides)
    reason = f"{len(sides[0])} and {len(sides[1])} seeds"
    return judge(found.low > 0, found.high < 0, reason, found, count)
