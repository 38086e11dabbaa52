"""Importance of the heads of every run: read, described, and how stable their ranking is."""

from itertools import combinations
from math import isnan
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.cells import NONE
from headcount.findings.results import Results
from headcount.findings.run_tables import HEAD, KEYS, check_runs, gather
from headcount.findings.setting import describe_importance, describe_setting
from headcount.findings.significance import spearman
from headcount.findings.tables import Table

_HALVES = ("importance_first_half", "importance_second_half")

CAPTION = (
    "How stable the ranking of heads is: Spearman's rank correlation of importances over all heads "
    "of the model. Between halves of the data: one model measured on either half, half the data "
    "each, so a lower bound for the ranking that is used, from all of it; low values mean that a "
    "ranking is noise, as happens where heads are nearly equal. Between seeds: two models "
    "trained alike; heads of one layer are interchangeable, so only kinds and layers can agree."
)
COLUMNS = [*KEYS, "other_seed", "comparison", "heads", "spearman"]


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


def describe_measured(results: Results) -> str:
    """Sentences: how importance was measured, and on which runs."""
    runs = results.read(read_importance, "importance")
    return f"{describe_importance(results.ranking)} {describe_setting(results, runs)}"


@exhibits.table("headmask_stability", needs=("importance",))
def stability(results: Results) -> Table:
    """Stability of the ranking of heads."""
    tidy = stability_table(results.read(read_importance, "importance"))
    return Table(tidy, stability_summary(tidy), f"{CAPTION} {describe_measured(results)}")


def stability_table(importance: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of a run's importances, a comparison a row: columns of `COLUMNS`.

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
    return pd.DataFrame(rows, columns=COLUMNS)


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
