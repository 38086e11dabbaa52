"""Importance of heads (HeadMask, tables 5 and 6), and scores with masked heads (its figures)."""

from itertools import combinations

import numpy as np
import pandas as pd

from headcount.analysis import stats
from headcount.analysis.collapse import with_updates
from headcount.analysis.frames import BASE, HEAD, RUN, Runs, with_paper
from headcount.analysis.published import headmask
from headcount.analysis.scores import BOOTSTRAP, over_seeds
from headcount.base.errors import UserError

_PAPER_HEADS = 144
CHANGE = f"{BOOTSTRAP}, of the change from no mask"  # name of the interval of one seed's score
_POINT = ["pair", "test_set", "run", "order", "index", "heads_masked"]


def inequality(importance: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Return mean or variance of importance by training, and unit-free measures of inequality."""
    heads = importance.query("statistic == 'importance'").groupby(RUN, sort=False)["value"]
    spread = heads.agg(mean="mean", variance=lambda x: x.var(ddof=0), heads="size")
    spread["gini"] = [stats.inequality(x.to_numpy()[None], "gini")[0] for _, x in heads]
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
    heads = importance[importance["statistic"] == "importance"].drop(columns="statistic")
    heads = heads.rename(columns={"value": "importance"})
    model = heads.groupby(RUN, sort=False)["importance"]
    return heads.assign(
        relative=heads["importance"] / model.transform(lambda values: values.abs().mean()),
        rank=model.rank(ascending=False, method="first").astype(int),
    )


def groups(masking: pd.DataFrame, run: str = "") -> pd.DataFrame:
    """Return scores with one group of heads masked, of all runs or of the run with this name."""
    rows = _ordered(masking, run, ["none", "group", "random_group"])
    drawn = rows["order"] == "random_group"
    rows["index"] = rows["index"].mask(drawn, 0)
    rows["heads_masked"] = rows["heads_masked"].mask(drawn, rows["heads_masked"].max())
    return over_seeds(rows, _POINT, draw="draw", bootstrap=CHANGE)


def cumulative(masking: pd.DataFrame, run: str = "") -> pd.DataFrame:
    """Return scores with more and more heads masked, of all runs or of the run with this name."""
    rows = _ordered(masking, run, ["ascending", "descending", "random_cumulative"])
    return over_seeds(rows, _POINT, draw="draw", bootstrap=CHANGE)


def _ordered(masking: pd.DataFrame, run: str, orders: list[str]) -> pd.DataFrame:
    """Return the rows of these orders, by every model's own ranking of its heads."""
    chosen = (masking["ranking"] == "own") & masking["order"].isin(orders)
    return masking[chosen & masking["run"].isin([run] if run else masking["run"])].copy()


def with_places(frame: pd.DataFrame) -> pd.DataFrame:
    """Return scores of groups with their names on an axis, and edges between kinds of groups."""
    places = frame["order"].map({"none": "none", "random_group": "random"})
    edges = {"none": 0.5, "random_group": frame["index"].max() + 0.5}
    places = places.fillna(frame["index"].astype(str))
    return frame.assign(place=places, edge=frame["order"].map(edges))


def by_number(frame: pd.DataFrame, trained_runs: Runs) -> pd.DataFrame:
    """Return the curves of the baseline and of the runs with the same N, for every N."""
    counts = {run: trained_runs[run].heads or 0 for run in frame["run"].unique()}
    numbers = list(dict.fromkeys(n for run, n in counts.items() if run != BASE)) or [0]
    parts = []
    for _, rows in frame.groupby(["pair", "test_set"], sort=False):
        for n in numbers:
            chosen = (rows["run"] == BASE) | (rows["run"].map(counts) == n)
            parts.append(rows[chosen].assign(number=f"N = {n}, " if n else ""))
    return pd.concat(parts, ignore_index=True)


def frequency(masks: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the updates of every interval that masked a head."""
    return with_updates(masks)
