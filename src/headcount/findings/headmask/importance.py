"""Importance of heads: how unequal they are (Tables 5 and 6), and how stable their ranking is."""

from itertools import combinations
from math import isfinite, isnan, nan, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.published import headmask
from headcount.findings.results import BASE, HEAD, KEYS, Results, check_runs, gather
from headcount.findings.setting import (
    OVER_SEEDS,
    describe_importance,
    describe_setting,
    importance_unit,
)
from headcount.findings.significance import spearman
from headcount.findings.tables import NONE, Table

_NAMES = {5: "variance", 6: "mean"}
_PAPER_HEADS = 144
_PLUS = ["ratio_to_baseline", "cv", "gini", "max_over_mean", "heads", "source"]
_HALVES = ("importance_first_half", "importance_second_half")

STABILITY_CAPTION = (
    "How stable the ranking of heads is: Spearman's rank correlation of importances over all "
    "heads of the model. Near 0 a ranking is noise, as happens where heads are nearly equal."
)
STABILITY_NOTES = (
    "Between halves of the data: one model measured on either half, half the data each, so a "
    "lower bound for the ranking that is used, from all of it. Between seeds: two models trained "
    "alike; heads of one layer are interchangeable, so only kinds and layers can agree. Of several "
    "seeds, or pairs of them: the mean, and in brackets the least and the largest.",
)
STABILITY_COLUMNS = [*KEYS, "other_seed", "comparison", "heads", "spearman"]


def read_importance(files: list[Path]) -> pd.DataFrame:
    """Statistics of every head of every run: pair, run, seed, kind, layer, head, statistic, value.

    Raises UserError for a file that has no importance of any head.
    """
    table = gather(files, [*HEAD, "statistic", "value"])
    expected = "rows whose statistic is importance, found none; make it again"
    check_runs(files, of_heads(table), expected)
    return table


def of_heads(table: pd.DataFrame, statistic: str = "importance") -> pd.DataFrame:
    """The rows of one statistic, without its name."""
    return table[table["statistic"] == statistic].drop(columns="statistic")


def describe_measured(results: Results) -> tuple[str, ...]:
    """Sentences: how importance was measured, and on which runs."""
    runs = results.read(read_importance, "importance")
    return (describe_importance(results.ranking), *describe_setting(results, runs))


@exhibits.table("headmask_stability", needs=("importance",), question="agreement")
def stability(results: Results) -> Table:
    """Stability of the ranking of heads."""
    tidy = stability_table(results.read(read_importance, "importance"))
    notes = (*STABILITY_NOTES, *describe_measured(results))
    return Table(tidy, stability_summary(tidy), STABILITY_CAPTION, notes)


def stability_table(importance: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of a run's importances, a comparison a row: columns of `STABILITY_COLUMNS`.

    Comparison `halves`: the two halves of the data, one model (`other_seed` empty); `seeds`: two
    models trained alike from other seeds. −1 to 1; empty where all heads are equal.
    """
    rows = []
    for (pair, run), of_run in importance.groupby(["pair", "run"], sort=False):
        seeds = dict(list(of_run.groupby("seed", sort=False)))
        for seed, mine in seeds.items():
            halves = (of_heads(mine, half) for half in _HALVES)
            found = _correlation(*halves, f"the halves of {pair}, {run}, seed {seed}")
            rows.append((pair, run, seed, "", "halves", *found))
        for (seed, mine), (other, theirs) in combinations(seeds.items(), 2):
            where = f"seeds {seed} and {other} of {pair}, {run}"
            found = _correlation(of_heads(mine), of_heads(theirs), where)
            rows.append((pair, run, seed, other, "seeds", *found))
    return pd.DataFrame(rows, columns=STABILITY_COLUMNS)


def _correlation(first: pd.DataFrame, second: pd.DataFrame, where: str) -> tuple[int, float | str]:
    """Number of heads, and the rank correlation of the same heads."""
    both = first.merge(second, on=HEAD, how="outer")
    if both.empty or both[["value_x", "value_y"]].isna().any(axis=None):
        raise UserError(
            f"importances, {where}: expected the same heads on both sides, found {len(first)} and "
            f"{len(second)}; make heads/ again"
        )
    rho = spearman(both["value_x"].to_numpy(), both["value_y"].to_numpy())
    return len(both), "" if isnan(rho) else rho


def stability_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair and run; least and largest in brackets."""
    rows = []
    for (pair, run), of_run in table.groupby(["pair", "run"], sort=False):
        row = {"pair": pair, "run": run, "heads": str(of_run["heads"].iloc[0])}
        for comparison, words in (("halves", "halves of the data"), ("seeds", "pairs of seeds")):
            found = of_run.loc[of_run["comparison"] == comparison, "spearman"]
            known = [rho for rho in found if rho != ""]
            mean = f"{sum(known) / len(known):.2f}" if known else NONE
            ends = f" ({min(known):.2f} to {max(known):.2f})" if len(known) > 1 else ""
            row[f"between {words}"] = mean + ends
        rows.append(row)
    return pd.DataFrame(rows)


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
        return Spread(mean, variance, nan, nan, nan)
    # Gini from sorted values: Σ (2i − n − 1) x_i / (n Σ x), i counted from 1.
    places = 2 * np.arange(1, values.size + 1) - values.size - 1
    gini = float(places @ values / (values.size * values.sum()))
    return Spread(mean, variance, sqrt(variance) / mean, gini, float(values[-1]) / mean)


@exhibits.table("headmask_table5", needs=("importance", "masks"))
def table5(results: Results) -> Table:
    """Table 5: variance of the importance of heads."""
    return _inequality(results, 5)


@exhibits.table("headmask_table6", needs=("importance", "masks"))
def table6(results: Results) -> Table:
    """Table 6: mean importance of heads."""
    return _inequality(results, 6)


def _inequality(results: Results, number: int) -> Table:
    caption = (
        f"{_NAMES[number].capitalize()} of the importance of heads, by training method. Its scale "
        "depends on how the loss is summed, so compare across sources only the ratio to the "
        "baseline and the measures without a unit."
    )
    unit = importance_unit(results.ranking)
    what = {5: f"Variance: ddof 0; square of: {unit}.", 6: f"Mean: {unit}."}[number]
    notes = (
        f"{what} Ratio: to the baseline of the same seed. Without a unit: coefficient of "
        "variation (cv), Gini coefficient, largest over mean; another way to sum tokens, another "
        "absolute value or another number of heads changes these as well. ± is the standard "
        "deviation over seeds.",
        OVER_SEEDS,
        f"Rows whose source is paper: {headmask.SOURCE}; their cv follows from its two tables.",
        *describe_measured(results),
    )
    rows = _ours(results.read(read_importance, "importance"), number) + _printed(number)
    tidy = pd.DataFrame(rows, columns=[*KEYS, _NAMES[number], *_PLUS])
    return Table(tidy, _by_run(tidy), caption, notes)


def _ours(importance: pd.DataFrame, number: int) -> list[tuple]:
    """A row per run and seed: keys, the statistic of Table `number`, then `_PLUS`.

    The ratio is to the baseline of the same seed, empty where that is 0 or lacks.
    """
    models = list(of_heads(importance).groupby(KEYS, sort=False)["value"])
    spreads = {key: spread(values) for key, values in models}
    rows = []
    for (pair, run, seed), values in models:
        ours, base = spreads[pair, run, seed], spreads.get((pair, BASE, seed))
        value, least = (getattr(part, _NAMES[number], 0) for part in (ours, base))
        measures = [cell if isfinite(cell) else "" for cell in ours[2:]]
        ratio = value / least if least else ""
        rows.append((pair, run, seed, value, ratio, *measures, len(values), "ours"))
    return rows


def _printed(number: int) -> list[tuple]:
    """The paper's rows; seed and unprinted measures are empty."""
    variance, mean = (headmask.table(table).set_index(["pair", "run"])["value"] for table in (5, 6))
    values = {5: variance, 6: mean}[number]
    rows = []
    for pair, runs in values.groupby("pair", sort=False):
        for (_, run), value in runs.items():
            cv = sqrt(variance[pair, run]) / mean[pair, run]
            ratio = value / values[pair, BASE]
            rows.append((pair, run, "", value, ratio, cv, "", "", _PAPER_HEADS, "paper"))
    return rows


def _by_run(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair and run, means over seeds, ± their deviation."""
    rows = []
    for (source, pair, run), seeds in table.groupby(["source", "pair", "run"], sort=False):
        row = {"pair": pair, "run": run}
        for column in table.columns[3:-2]:
            row[column.replace("_", " ")] = _mean_cell(seeds[column])
        rows.append(row | {"heads": str(seeds["heads"].iloc[0]), "source": source})
    return pd.DataFrame(rows)


def _mean_cell(values: pd.Series) -> str:
    """Mean over seeds and, from two on, ± standard deviation (ddof 1); a dash if unknown."""
    known = values[values != ""].astype(float)
    if known.empty:
        return NONE
    return number(known.mean()) + (f" ± {number(known.std())}" if len(known) > 1 else "")


def number(value: float) -> str:
    """A number for people: two decimals from 1 on, three significant digits below."""
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:#.3g}"
