"""Importance of heads: its inequality (HeadMask, tables 5 and 6), stability and distribution."""

from itertools import combinations

import numpy as np
import pandas as pd

from headcount.analysis.frames import BASE, HEAD, RUN, with_paper
from headcount.analysis.published import headmask
from headcount.base.errors import UserError

_PAPER_HEADS = 144


def inequality(importance: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Return mean or variance of importance by training, and unit-free measures of inequality.

    Unit-free measures are missing where an importance is below 0.
    """
    heads = _of(importance, "importance").groupby(RUN, sort=False)["value"]
    spread = heads.agg(mean="mean", variance=lambda x: x.var(ddof=0), gini=gini, heads="size")
    spread["cv"] = spread["variance"] ** 0.5 / spread["mean"]
    spread["max_over_mean"] = heads.max() / spread["mean"]
    spread.loc[heads.min() < 0, ["cv", "gini", "max_over_mean"]] = np.nan
    spread["ratio_to_baseline"] = _ratio_to_baseline(spread[statistic])
    columns = [statistic, "ratio_to_baseline", "cv", "gini", "max_over_mean", "heads"]
    return with_paper(spread[columns].reset_index(), _printed(statistic))


def _printed(statistic: str) -> pd.DataFrame:
    numbers = headmask.table("table5", "variance").merge(headmask.table("table6", "mean"))
    printed = numbers.set_index(["pair", "run"])
    printed["cv"] = printed["variance"] ** 0.5 / printed["mean"]
    printed["ratio_to_baseline"] = _ratio_to_baseline(printed[statistic])
    pairs = [rows for _, rows in printed.groupby("pair", sort=False)]
    return pd.concat(pairs).assign(heads=_PAPER_HEADS).reset_index()


def _ratio_to_baseline(values: pd.Series) -> pd.Series:
    """Return values over the baseline's value of the pair and seed, missing where that is 0."""
    base = values[values.index.get_level_values("run") == BASE].droplevel("run")
    return values / base.where(base != 0).reindex(values.index.droplevel("run")).to_numpy()


def gini(values: pd.Series) -> float:
    """Return the Gini coefficient: 0 for equal values, (n − 1) / n if one value has everything.

    Raises UserError if all values are 0.
    """
    x = np.sort(values.to_numpy(float))
    if not x.any():
        raise UserError("importances: expected numbers, found only 0; make the file again")
    return float((2 * np.arange(1, x.size + 1) - x.size - 1) @ x / (x.size * x.sum()))


def stability(importance: pd.DataFrame) -> pd.DataFrame:
    """Return rank correlations of importance between halves of the data and between seeds."""
    wide = importance.pivot(index=[*RUN, *HEAD], columns="statistic", values="value")
    rows = []
    for (pair, run), of_run in importance.groupby(["pair", "run"], sort=False):
        models = {seed: wide.loc[pair, run, seed] for seed in of_run["seed"].unique()}
        for seed, heads in models.items():
            rho = _rank_correlation(heads["importance_first_half"], heads["importance_second_half"])
            rows.append((pair, run, seed, None, "halves", len(heads), rho))
        for (seed, x), (other, y) in combinations(models.items(), 2):
            rho = _rank_correlation(x["importance"], y["importance"])
            rows.append((pair, run, seed, other, "seeds", len(x), rho))
    return pd.DataFrame(rows, columns=[*RUN, "other_seed", "comparison", "heads", "spearman"])


def _rank_correlation(first: pd.Series, second: pd.Series) -> float:
    """Return Spearman's correlation of the same heads. Raises UserError for other heads."""
    both = pd.concat([first, second], axis=1)
    if both.isna().any(axis=None):
        raise UserError(
            f"importances: expected the same heads on both sides, found {first.count()} and "
            f"{second.count()}; make heads/ again"
        )
    ranked = both.nunique().min() > 1
    return both.iloc[:, 0].corr(both.iloc[:, 1], "spearman") if ranked else np.nan


def distribution(importance: pd.DataFrame) -> pd.DataFrame:
    """Return every head's importance, relative to the mean size in its model, and its rank."""
    heads = _of(importance, "importance").rename(columns={"value": "importance"})
    model = heads.groupby(RUN, sort=False)["importance"]
    return heads.assign(
        relative=heads["importance"] / model.transform(lambda values: values.abs().mean()),
        rank=model.rank(ascending=False, method="first").astype(int),
    )


def _of(table: pd.DataFrame, statistic: str) -> pd.DataFrame:
    return table[table["statistic"] == statistic].drop(columns="statistic")
