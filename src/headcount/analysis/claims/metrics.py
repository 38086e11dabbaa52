"""Numbers of the claims of HeadMask and of Michel et al.: masked heads, importance, speed."""

from functools import partial

import numpy as np
import pandas as pd

from headcount.analysis.claims import estimates as est
from headcount.analysis.claims.estimates import BOUNDS, TEST
from headcount.analysis.claims.evidence import MODEL
from headcount.analysis.frames import BASE


def group_costs(groups: pd.DataFrame) -> pd.DataFrame:
    """Return the change without the least important group, and minus that without the most."""
    rows = groups.sort_values("group")
    top, bottom = rows.drop_duplicates(TEST), rows.drop_duplicates(TEST, keep="last")
    difference = est.contrast(bottom, top, TEST).assign(part="difference")
    return pd.concat([difference, bottom.assign(part="least important")])


def order_gap(orders: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score, unimportant heads masked first minus important heads first."""
    up, down = (orders[orders["order"] == order] for order in ("ascending", "descending"))
    return est.contrast(est.areas(up, ends=False), est.areas(down, ends=False), TEST)


def gains(scores: pd.DataFrame, by_pair: bool, without: str = "") -> pd.DataFrame:
    """Return score differences to the baseline, without pairs of a language."""
    wide = scores.pivot_table("value", TEST, "statistic").reset_index()
    names = dict(zip(["delta", "low_bootstrap", "high_bootstrap"], BOUNDS, strict=True))
    rows = wide.rename(columns=names).reindex(columns=[*TEST, *BOUNDS])
    rows.loc[rows["run"] == BASE, BOUNDS] = 0.0
    languages = rows["pair"].str.rpartition(".")[2].str.split("-")
    rows = rows[[without not in pair for pair in languages]]
    return rows.assign(part=rows["pair"]) if by_pair else rows


def importance_statistics(importance: pd.DataFrame, statistics: list[str]) -> pd.DataFrame:
    """Return statistics of head importance, with intervals by bootstrap over heads."""

    def statistic(model: pd.DataFrame, name: str) -> dict:
        heads = model["importance"].to_numpy()
        draws = np.random.default_rng(1).integers(len(heads), size=(1000, len(heads)))
        low, high = np.quantile(_of_heads(heads[draws], name), (0.025, 0.975))
        value = _of_heads(heads[None], name)[0]
        return {"value": value, "low": low, "high": high, "part": name}

    by_name = [partial(statistic, name=name) for name in statistics]
    return pd.concat(est.by_group(importance, MODEL, number) for number in by_name)


def _of_heads(heads: np.ndarray, name: str) -> np.ndarray:
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


def group_spread(groups: pd.DataFrame) -> pd.DataFrame:
    """Return the standard deviation of scores over groups, with errors in linear approximation."""

    def spread(model: pd.DataFrame) -> dict[str, float]:
        apart = (model["value"] - model["value"].mean()).to_numpy()
        return est.combined(apart / (len(apart) * apart.std() or np.inf), model)

    return est.by_group(groups, TEST, spread)


def early_importance(training: pd.DataFrame, stability: pd.DataFrame, early: float) -> pd.DataFrame:
    """Return how well the first checkpoint's importance predicts the last, above other seeds'."""
    last = training.groupby(MODEL)["update"].transform("max")
    first = training[training["update"] <= early * last].sort_values("update")
    both = pd.concat([stability, stability.assign(seed=stability["other_seed"])])
    others = both.groupby(MODEL)["spearman"].mean().rename("others")
    rows = first.drop_duplicates(MODEL).join(others, on=MODEL)
    value = rows["spearman_raw_with_last"] - rows["others"]
    return rows.assign(value=value, low=np.nan, high=np.nan)


def training_share(frequency: pd.DataFrame) -> pd.DataFrame:
    """Return updates of the least trained head over updates of the mean head."""
    heads = frequency.groupby([*MODEL, "kind", "layer", "head"])[["trained", "updates"]].sum()
    means = heads.groupby(MODEL)["trained"].mean().rename("mean")
    least = heads.groupby(MODEL).min().join(means).reset_index()
    rows = est.of_trials(least, least["trained"] / least["updates"], least["updates"])
    return rows.assign(**rows[BOUNDS].mul(rows["updates"] / rows["mean"], axis=0))


def best_gain(ablation: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest change over several test sets, of the head where that is largest."""
    several = ablation[ablation.groupby(MODEL)["test_set"].transform("nunique") > 1]
    least = several.groupby([*MODEL, "kind", "layer", "head"])[BOUNDS].min()
    return least.groupby(MODEL).max().reset_index().assign(tested=False)


def profile_change(training: pd.DataFrame, floor: float) -> pd.DataFrame:
    """Return changes of the pruning profile, from a first checkpoint above `floor` to the last."""
    names = ["r_squared", "end_mass", "score"]
    by_time = training.sort_values("update").groupby(TEST)[names]
    change = (by_time.last() - by_time.first())[by_time.first()["score"] >= floor]
    return change.drop(columns="score").reset_index().melt(TEST, var_name="part")


def early_kept(training: pd.DataFrame, early: float) -> pd.DataFrame:
    """Return the score kept at the last checkpoint within `early`, which is not the first."""
    updates = training.groupby(TEST)["update"]
    inside = training["update"] <= early * updates.transform("max")
    later = inside & (training["update"] > updates.transform("min"))
    return est.largest(training[later], "update").dropna(subset="value")


def speed_gain(speed: pd.DataFrame, percent: float) -> pd.DataFrame:
    """Return speed without `percent` of the heads over speed with all, and its growth."""
    rows, keys = speed[speed["percent"] == percent].sort_values("batch_size"), [*MODEL, "phase"]
    large, small = rows.drop_duplicates(keys, keep="last"), rows.drop_duplicates(keys)
    growth = est.contrast(large, small, keys, ratio=True).query("batch_size > batch_size_2")
    growth = growth.assign(part=growth["phase"] + " at large batches over small ones")
    return pd.concat([large.assign(part=large["phase"]), growth]) if len(growth) else growth


def parameter_share(speed: pd.DataFrame) -> pd.DataFrame:
    """Return the share of parameters in the heads, by models with fewer heads."""
    rows = speed.dropna(subset="parameters").sort_values("heads_left")
    few, whole = rows.drop_duplicates(MODEL), rows.drop_duplicates(MODEL, keep="last")
    both = whole.merge(few, on=MODEL, suffixes=("", "_few")).query("heads_left > heads_left_few")
    gone = (both["heads_left"] - both["heads_left_few"]) / both["heads_left"]
    return est.exact(both, (1 - both["parameters_few"] / both["parameters"]) / gone)
