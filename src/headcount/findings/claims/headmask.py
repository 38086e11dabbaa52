"""Decisions on the claims of HeadMask that need trainings with masked heads."""

from dataclasses import replace
from itertools import pairwise
from math import exp

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from headcount.findings.claims.curves import (
    MASKED,
    area_gaps,
    areas_kept,
    by_own_ranking,
    groups_masked,
)
from headcount.findings.claims.estimates import over_trainings
from headcount.findings.claims.evidence import MODEL, TEST, Evidence
from headcount.findings.claims.verdicts import (
    FAILS,
    MIN_SEEDS,
    NO_RUN,
    TRAINING,
    UNDECIDED,
    UNIT,
    Decision,
    by_model,
    by_seed,
    contrasts,
    few_seeds,
    judge,
    too_few,
    undecided,
)
from headcount.findings.results import BASE, HEAD
from headcount.findings.significance import ALPHA

METHODS = ("random", "impt")
TOP = 1 / 8  # of the heads; the paper's 12.5 %, of masks and of groups


def method_gains(evidence: Evidence, method: str, spared: str = "", gain: float = 0.0) -> Decision:
    """Whether a method raises BLEU on every pair run, but for those with language `spared`.

    A pair is a corpus in one direction, as everywhere. Holds if all means over seeds are above 0,
    most intervals are, and no spared pair gains or loses; fails if an interval lies below 0, or if
    a spared pair gains more than `gain`.
    """
    trainings = _by_pair(_deltas(evidence, method))
    counts = trainings.groupby("pair").size()
    apart = {pair for pair in counts.index if spared in pair.split(".")[-1].split("-")}
    pairs = trainings.groupby("pair")
    known = {pair: over_trainings(v) for pair, v in pairs if len(v) >= MIN_SEEDS}
    main = [each for pair, each in known.items() if pair not in apart]
    without, of_spared = counts.drop(apart), counts[list(apart)]
    if not main:
        lack = f"no pair without {spared}" if without.empty else few_seeds(without.max())
        value = float(pairs.mean().mean())
        return Decision(UNDECIDED, lack if len(counts) else NO_RUN, value, seeds=len(trainings))
    others, values = [known[pair] for pair in apart if pair in known], known.values()
    above = sorted(each.p for each in main if each.low > 0)
    most = len(above) > len(main) / 2 and all(each.value > 0 for each in main)
    still = bool(others or not spared) and all(each.low <= 0 <= each.high for each in others)
    against = [each.p for each in main if each.high < 0]
    against += [each.p for each in others if each.low > 0 and each.value > gain]
    tests = len(known) if against else 1
    value = float(np.mean([each.value for each in values]))
    low, high = min(each.low for each in values), max(each.high for each in values)
    p = min(against) if against else above[len(main) // 2] if most else max(e.p for e in main)
    reason = f"interval above 0 in {len(above)} of {len(main)} pairs"
    if spared and not others:
        why = f"with {spared} {few_seeds(of_spared.max())}" if apart else f"no pair with {spared}"
        reason += f"; {why}"
    fails = bool(against) and p * tests < ALPHA
    seeds, holds = int(counts[list(known)].sum()), most and still and not against
    return judge(holds, fails, reason, (value, low, high, p), seeds, tests)


def _deltas(evidence: Evidence, method: str) -> pd.Series:
    """BLEU differences to the baseline, by experiment, pair, seed and test set."""
    columns = ["test_set", "statistic", "value"]
    tables = [evidence.rows(f"tables/headmask_table{n}.csv", columns) for n in (2, 3, 4)]
    rows = pd.concat(tables, ignore_index=True).drop_duplicates([*MODEL, *columns[:2]])
    rows = rows[rows["statistic"] == "delta"].astype({"value": float})
    return _of_runs(evidence, rows, method).set_index([*UNIT, "test_set"])["value"]


def _by_pair(values: pd.Series) -> pd.Series:
    """Means by pair and seed: a pair counts once, however many test sets it has."""
    return values.groupby([*TRAINING, "test_set"]).mean().groupby(TRAINING).mean()


def _of_runs(
    evidence: Evidence, rows: pd.DataFrame, method: str, share: float = TOP
) -> pd.DataFrame:
    """The rows of the baseline, or of the run by a method that masks this share of the heads.

    In each experiment the run whose number of heads is nearest, within half a head.
    """
    if method == BASE:
        return rows[rows["run"] == BASE]
    table = evidence.rows("tables/headmask_table5.csv", ["heads"])
    numbers = table["run"].str.removeprefix(f"{method}-")
    known = table[numbers.str.isdecimal()].drop_duplicates(["experiment", "run"])
    apart = (numbers[known.index].astype(int) - share * known["heads"].astype(float)).abs()
    near = known.assign(apart=apart)[apart <= 0.5].sort_values("apart")
    chosen = near.drop_duplicates("experiment")[["experiment", "run"]]
    return evidence.compare(rows.merge(chosen, on=["experiment", "run"]))


def random_over_important(evidence: Evidence) -> Decision:
    """Whether Random-N has more BLEU than Impt-N: over seeds, means of all their pairs."""
    sides = [_deltas(evidence, method) for method in METHODS]
    trainings = _by_pair((sides[0] - sides[1]).dropna())
    pairs = by_seed(trainings)
    found, count = pairs.mean(axis=1), int(pairs.count().sum())
    if len(found) < MIN_SEEDS:
        return too_few(found)
    whole = over_trainings(found)
    reason = f"{count} trainings of each, over all pairs of {len(found)} seeds"
    return judge(whole.low > 0, whole.high < 0, reason, whole, count)


def importance_falls(evidence: Evidence, number: int, most: str = "") -> Decision:
    """Whether both methods lower what Table `number` has of importance, as ratios to the baseline.

    With `most`, that method's ratio must be below the other's too.
    """
    columns = ["ratio_to_baseline"]
    rows = evidence.rows(f"tables/headmask_table{number}.csv", columns)
    rows["log"] = np.log(rows["ratio_to_baseline"].astype(float))
    found = {method: _of_method(evidence, rows, method, "log") for method in METHODS}
    if most:
        (other,) = set(METHODS) - {most}
        found[f"{most} below {other}"] = found[most] - found[other]
    return contrasts(found, exp)


def _of_method(evidence: Evidence, rows: pd.DataFrame, method: str, column: str) -> pd.Series:
    """A statistic of the trainings by a method, by experiment, pair and seed."""
    return _of_runs(evidence, rows, method).set_index(UNIT)[column].astype(float)


def importance_flatter(evidence: Evidence) -> Decision:
    """Whether both methods lower the coefficient of variation and Gini's of importance."""
    rows = evidence.rows("tables/headmask_table5.csv", ["cv", "gini"])
    found = {}
    for name, words in (("cv", "coefficient of variation"), ("gini", "Gini's coefficient")):
        base = _of_method(evidence, rows, BASE, name)
        for method in METHODS:
            found[f"{words} of {method}"] = _of_method(evidence, rows, method, name) - base
    return contrasts(found)


def no_super_heads(evidence: Evidence) -> Decision:
    """Whether Impt-N's largest importances are smaller than the baseline's and Random-N's.

    By the largest over the mean, and by the shares of the top 1 % and 12.5 % of heads. Fails by
    the baseline's alone.
    """
    columns = [*HEAD, "importance"]
    rows = evidence.rows("figures/headmask_heads.csv", columns)
    models = rows.groupby(MODEL)["importance"]
    spread = pd.DataFrame({f"top {share:.1%}": models.apply(_top_share, share=share)
                           for share in (0.01, TOP)})  # fmt: skip
    spread["largest over mean"] = models.max() / models.mean()
    spread = spread.reset_index()
    found = {}
    for name in ("largest over mean", "top 1.0%", "top 12.5%"):
        of_impt = _of_method(evidence, spread, "impt", name)
        for other in (BASE, "random"):
            found[f"{name}, to {other}"] = of_impt - _of_method(evidence, spread, other, name)
    whole = contrasts(found)
    to_base = {name: each for name, each in found.items() if name.endswith(BASE)}
    if whole.verdict == FAILS and contrasts(to_base).verdict != FAILS:
        return replace(whole, verdict=UNDECIDED, reason=f"between the limits: {whole.reason}")
    return whole


def _top_share(values: pd.Series, share: float) -> float:
    """Share of all importance that the most important heads have, at least one of them."""
    count = max(1, round(share * len(values)))
    return float(values.nlargest(count).sum() / values.sum())


def top_group_spared(evidence: Evidence) -> Decision:
    """Whether both methods keep more of their BLEU when the most important group is masked."""
    rows = evidence.rows("masking/headmask.csv", MASKED)
    groups = groups_masked(rows)
    top = groups.loc[groups.groupby(TEST)["index"].idxmin()]
    lost = top.assign(lost=-top["delta"] / (top["bleu"] - top["delta"]))
    by_run = lost.groupby(MODEL)["lost"].mean().reset_index()
    base = _of_method(evidence, by_run, BASE, "lost")
    return contrasts({m: _of_method(evidence, by_run, m, "lost") - base for m in METHODS})


def steadier(evidence: Evidence) -> Decision:
    """Whether BLEU over the groups masked alone varies less in Impt-N than in Random-N."""
    rows = evidence.rows("masking/headmask.csv", MASKED)
    spread = groups_masked(rows).groupby(TEST)["bleu"].std(ddof=0)
    by_run = spread.groupby(MODEL).mean().reset_index()
    both = [_of_method(evidence, by_run, method, "bleu") for method in ("impt", "random")]
    return contrasts({"impt to random": both[0] - both[1]})


def gap_closes(evidence: Evidence, shares: list[float]) -> Decision:
    """Whether the two orders' areas come closer with each larger share of heads masked.

    The gap between masking the unimportant first and the important first, relative to BLEU, must
    fall from the baseline to the first of `shares`, and on from share to share, in both methods.
    """
    gaps = area_gaps(evidence.rows("masking/headmask.csv", MASKED))
    found = {}
    for method in METHODS:
        sides = [_of_method(evidence, gaps, BASE, "gap")]
        for share in shares:
            sides.append(_of_runs(evidence, gaps, method, share).set_index(UNIT)["gap"])
        if any(side.empty for side in sides):
            return undecided(f"{NO_RUN}: {method} with {' and '.join(f'{s:.1%}' for s in shares)}")
        steps = enumerate(pairwise(sides), start=1)
        found |= {f"{method}, step {place}": after - before for place, (before, after) in steps}
    return contrasts(found)


def prunes_further(evidence: Evidence) -> Decision:
    """Whether more BLEU is kept, relative to a model's own, as its unimportant heads go.

    Area under the curve from no head to all, of both methods against the baseline.
    """
    kept = areas_kept(by_own_ranking(evidence.rows("masking/headmask.csv", MASKED)), "ascending")
    base = _of_method(evidence, kept, BASE, "kept")
    return contrasts({m: base - _of_method(evidence, kept, m, "kept") for m in METHODS})


def masked_evenly(evidence: Evidence, level: float, least: float) -> Decision:
    """Whether Random-N leaves every head about as many updates in which it is trained.

    Value: updates that train the least trained head, over the mean head's. Holds if that is at
    least `least` and counts of masks are uniform (chi-square, p above `level`); fails if neither.
    Gradient norms, which would weigh the updates, are in no file.
    """
    columns = ["step", *HEAD, "masked", "updates"]
    rows = evidence.rows("figures/headmask_frequency.csv", columns)
    rows = _of_runs(evidence, rows, "random")
    return by_model(rows, MODEL, lambda model: _evenly(model, level, least))


def _evenly(model: pd.DataFrame, level: float, least: float) -> Decision:
    """As `masked_evenly`, of one training."""
    counts = (model["masked"] * model["updates"]).groupby([model[n] for n in HEAD]).sum()
    updates = model.groupby("step")["updates"].first().sum()
    trained = updates - counts
    value = float(trained.min() / trained.mean())
    p = _uniform(counts.to_numpy(dtype=float), float(updates))
    reason = f"masks are uniform over heads with p = {p:.2g}"
    return judge(value >= least and p > level, value < least and p <= level, reason, (value,))


def _uniform(counts: np.ndarray, updates: float) -> float:
    """P that masks fell on heads as often as they do when each update draws without replacement."""
    heads, expected = len(counts), counts.mean()
    variance = expected * (1 - expected / updates) * heads / (heads - 1)
    return float(chdtrc(heads - 1, ((counts - expected) ** 2).sum() / variance))
