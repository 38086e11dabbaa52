"""How unequal the heads are by training method (Tables 5, 6), and how stable their ranking is."""

from itertools import combinations
from math import isfinite, isnan, sqrt
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.findings import exhibits
from headcount.findings.cells import NONE
from headcount.findings.headmask.inequality import spread
from headcount.findings.published import headmask
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE, HEAD, KEYS, gather, run_of
from headcount.findings.setting import (
    OVER_SEEDS,
    describe_importance,
    describe_setting,
    importance_unit,
)
from headcount.findings.significance import spearman
from headcount.findings.tables import Table

_HALVES = ("importance_first_half", "importance_second_half")
_PAPER_HEADS = 144
_PLUS = ["ratio_to_baseline", "cv", "gini", "max_over_mean", "heads", "source"]


STABILITY_CAPTION = (
    "How stable the ranking of heads is: Spearman's rank correlation of importances over all heads "
    "of the model. Between halves of the data: one model measured on either half, half the data "
    "each, so a lower bound for the ranking that is used, from all of it; low values mean that a "
    "ranking is noise, as happens where heads are nearly equal. Between seeds: two models "
    "trained alike; heads of one layer are interchangeable, so only kinds and layers can agree."
)


@exhibits.table(
    "headmask_table5", "Table 5: variance of the importance of heads", needs=("importance",)
)
def table5(results: Results) -> Table:
    """Variance of importance by run."""
    return _inequality(results, 5)


@exhibits.table("headmask_table6", "Table 6: mean importance of heads", needs=("importance",))
def table6(results: Results) -> Table:
    """Mean importance by run."""
    return _inequality(results, 6)


def _inequality(results: Results, number: int) -> Table:
    tidy = inequality_table(results.read(read_importance, "importance"), number)
    caption = inequality_caption(number, importance_unit(results.ranking))
    return Table(tidy, inequality_summary(tidy), f"{caption} {describe_measured(results)}")


@exhibits.table("headmask_stability", "Stability of the ranking of heads", needs=("importance",))
def stability(results: Results) -> Table:
    """Rank correlations of importance between halves of the data, and between seeds."""
    tidy = stability_table(results.read(read_importance, "importance"))
    caption = f"{STABILITY_CAPTION} {describe_measured(results)}"
    return Table(tidy, stability_summary(tidy), caption)


def describe_measured(results: Results) -> str:
    """Sentences: how importance was measured, and on which runs."""
    runs = results.read(read_importance, "importance")
    return f"{describe_importance(results.ranking)} {describe_setting(results, runs)}"


def inequality_caption(number: int, unit: str) -> str:
    """What Table `number`, 5 or 6, shows; `unit` is that of the importance."""
    what = {5: f"Variance (ddof 0; square of: {unit})", 6: f"Mean ({unit})"}[number]
    return (
        f"{what} of the importance of heads, by training "
        "method. Its scale depends on how the loss is summed, so compare across sources only the "
        "ratio to the baseline of the same seed and the measures without a unit: coefficient of "
        "variation (cv), Gini coefficient, largest over mean; ± is the standard deviation over "
        f"seeds. {OVER_SEEDS} Rows whose source is paper: {headmask.source()}; their cv follows "
        "from its two tables."
    )


def read_importance(files: list[Path]) -> pd.DataFrame:
    """Statistics of every head of every run: pair, run, seed, kind, layer, head, statistic, value.

    Raises UserError for a file that has no importance of any head.
    """
    table = gather(files, [*HEAD, "statistic", "value"])
    runs = table.loc[table["statistic"] == "importance", KEYS].drop_duplicates()
    named = set(runs.itertuples(index=False, name=None))
    for path in files:
        if run_of(path) not in named:
            raise UserError(
                f"{path}: expected rows whose statistic is importance, found none; make it again"
            )
    return table


def of_heads(table: pd.DataFrame, statistic: str = "importance") -> pd.DataFrame:
    """The rows of one statistic, without its name."""
    return table[table["statistic"] == statistic].drop(columns="statistic")


def inequality_table(importance: pd.DataFrame, number: int) -> pd.DataFrame:
    """Table 5 (`variance`) or 6 (`mean`): pair, run, seed, that statistic, then `_PLUS`.

    A row per run and seed, then the paper's, whose seed and unprinted measures are empty. The ratio
    is to the baseline of the same seed, empty where that is 0 or lacks.
    """
    name = {5: "variance", 6: "mean"}[number]
    heads = of_heads(importance)
    spreads = {key: spread(values) for key, values in heads.groupby(KEYS, sort=False)["value"]}
    sizes = heads.groupby(KEYS, sort=False).size()
    rows = []
    for (pair, run, seed), found in spreads.items():
        value, base = (getattr(part, name, 0) for part in (found, spreads.get((pair, BASE, seed))))
        measures = [cell if isfinite(cell) else "" for cell in found[2:]]
        measures.append(int(sizes[pair, run, seed]))
        rows.append((pair, run, seed, value, value / base if base else "", *measures, "ours"))
    return pd.DataFrame(rows + _printed(number), columns=[*KEYS, name, *_PLUS])


def _printed(number: int) -> list[tuple]:
    """The paper's rows; the coefficient of variation follows from its two tables."""
    variance, mean = (headmask.table(table).set_index(["pair", "run"])["value"] for table in (5, 6))
    values = {5: variance, 6: mean}[number]
    rows = []
    for pair, runs in values.groupby("pair", sort=False):
        for (_, run), value in runs.items():
            cv = sqrt(variance[pair, run]) / mean[pair, run]
            ratio = value / values[pair, BASE]
            rows.append((pair, run, "", value, ratio, cv, "", "", _PAPER_HEADS, "paper"))
    return rows


def inequality_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per pair and run, means over seeds, ± their deviation."""
    rows = []
    name = table.columns[3]
    for (source, pair, run), seeds in table.groupby(["source", "pair", "run"], sort=False):
        row = {"pair": pair, "run": run, name: mean_cell(seeds[name])}
        for column in _PLUS[:-2]:
            row[column.replace("_", " ")] = mean_cell(seeds[column])
        rows.append(row | {"heads": str(seeds["heads"].iloc[0]), "source": source})
    return pd.DataFrame(rows)


def mean_cell(values: pd.Series) -> str:
    """Mean over seeds and, from two on, ± standard deviation (ddof 1); a dash if unknown."""
    known = pd.Series([value for value in values if value != ""], dtype=float)
    if known.empty:
        return NONE
    return number(known.mean()) + (f" ± {number(known.std())}" if len(known) > 1 else "")


def number(value: float) -> str:
    """A number for people: two decimals from 1 on, three significant digits below."""
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:#.3g}"


STABILITY_COLUMNS = [*KEYS, "other_seed", "comparison", "heads", "spearman"]


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
            row[f"between {words}"] = _range_cell([rho for rho in found if rho != ""])
        rows.append(row)
    return pd.DataFrame(rows)


def _range_cell(found: list[float]) -> str:
    if not found:
        return NONE
    mean = sum(found) / len(found)
    return f"{mean:.2f}" + (f" ({min(found):.2f} to {max(found):.2f})" if len(found) > 1 else "")
