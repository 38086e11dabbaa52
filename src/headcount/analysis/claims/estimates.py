"""Numbers with 95 % intervals, and the numbers behind claims of HeadMask and of Michel et al.

Metrics of claims return a row for each model: columns of `MODEL`, value, low, high. Optional are
`part` of the claim, `shuffled_p` of the value being 0, and `tested`: whether the number has a test.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from headcount.analysis.claims.claims import MODEL, ledger
from headcount.analysis.frames import BASE
from headcount.analysis.stats import Z, inequality, wilson

BOUNDS = ["value", "low", "high"]
TEST = [*MODEL, "test_set"]


def listed(rows: pd.DataFrame, where: str = "", part: str = "") -> pd.DataFrame:
    """Return the numbers of a source as they are. A column may name the parts of the claim."""
    rows = rows.query(where) if where else rows
    return rows.assign(part=rows[part]) if part else rows


def of_each_pair(rows: pd.DataFrame) -> pd.DataFrame:
    """Return numbers of two pairs of one model for either pair, so that all count alike."""
    names = {"pair": "other_pair", "other_pair": "pair"}
    return pd.concat([rows, rows.rename(columns=names)], ignore_index=True)


def largest(rows: pd.DataFrame, by: str, keys: Sequence[str] = TEST) -> pd.DataFrame:
    """Return the row with the largest number of each model, or of other keys."""
    return rows.dropna(subset=by).sort_values(by, kind="stable").drop_duplicates(keys, keep="last")


def contrast(
    first: pd.DataFrame, second: pd.DataFrame, keys: list[str], ratio: bool = False
) -> pd.DataFrame:
    """Return first minus (or over) second at the same keys, with the errors of both added."""
    both = first.merge(second, on=keys, suffixes=("", "_2"))
    for name, other in zip(BOUNDS, ("value_2", "high_2", "low_2"), strict=True):
        number = both.pop(other)
        both[name] = both[name] / number if ratio else both[name] - number
    return both


def compared(
    rows: pd.DataFrame, runs: pd.DataFrame, methods: list[list[str]], ratio: bool
) -> pd.DataFrame:
    """Return numbers of a method, or of one against another, or NaN without such runs."""
    parts = []
    for names in methods:
        both, *others = (chosen(rows, runs, name) for name in names)
        for other in others:
            same = [key for key in ("experiment", "pair") if both[key].isin(other[key]).any()]
            keys = [*same, "seed", *(key for key in ("test_set", "part") if key in rows)]
            both = contrast(both, other, keys, ratio)
            both["part"] = (both["part"] + ", " if "part" in both else "") + " to ".join(names)
        parts.append(both if len(both) else pd.DataFrame({"part": [" to ".join(names)]}))
    return pd.concat(parts)


def chosen(rows: pd.DataFrame, runs: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return rows of one of the methods in `claims.yaml`."""
    settings = runs[[*MODEL, "method", "masked", "heads"]]
    both = rows.merge(settings, "left", on=MODEL, suffixes=("_own", ""))
    return both.query(ledger().methods[method]).drop(columns=settings.columns[4:])


def combined(weights: np.ndarray, terms: pd.DataFrame) -> dict[str, float]:
    """Return a weighted sum of numbers. Its error is the sum of the errors of all terms."""
    scaled = weights[:, None] * terms[BOUNDS].to_numpy(dtype=float)
    ends = np.sort(scaled[:, 1:], axis=1).sum(axis=0)
    return dict(zip(BOUNDS, (scaled[:, 0].sum(), *ends), strict=True))


def by_group(
    rows: pd.DataFrame, keys: Sequence[str], numbers: Callable[[pd.DataFrame], Iterable[dict]]
) -> pd.DataFrame:
    """Return a row with the keys for each number of each group."""
    groups = rows.groupby(list(keys), sort=False)
    cells = [dict(zip(keys, key, strict=True)) | n for key, group in groups for n in numbers(group)]
    return pd.DataFrame(cells, columns=None if cells else [*keys, *BOUNDS])


def exact(rows: pd.DataFrame, value: pd.Series, error: pd.Series | float = 0.0) -> pd.DataFrame:
    """Return rows with numbers and their standard errors, 0 if they have none."""
    return rows.assign(value=value, low=value - Z * error, high=value + Z * error)


def of_trials(rows: pd.DataFrame, shares: pd.Series, trials: pd.Series) -> pd.DataFrame:
    """Return rows with shares of trials and Wilson's intervals."""
    ends = [wilson(share * count, count) for share, count in zip(shares, trials, strict=True)]
    bounds = pd.DataFrame(ends, rows.index, BOUNDS[1:])
    return rows.assign(value=shares, low=bounds["low"], high=bounds["high"])


def share_above(rows: pd.DataFrame, change: float, where: str = "") -> pd.DataFrame:
    """Return the share of rows with a value above `change`. Bounds count by ends of intervals."""
    rows = rows.query(where) if where else rows
    above = (rows[BOUNDS] > change).groupby([rows[key] for key in TEST], sort=False).mean()
    return above.reset_index().assign(tested=False)


def areas(curves: pd.DataFrame, ends: bool = True) -> pd.DataFrame:
    """Return the mean of curves over the share of heads masked. Two orders share their ends."""

    def area(curve: pd.DataFrame) -> Iterator[dict]:
        curve = curve.groupby("heads_masked")[BOUNDS].mean().reset_index()
        steps = np.diff(curve["heads_masked"]) / np.ptp(curve["heads_masked"])
        weights = (np.append(steps, 0) + np.append(0, steps)) / 2
        yield combined(weights, curve) if ends else combined(weights[1:-1], curve[1:-1])

    return by_group(curves, TEST, area)


def at_share(
    curves: pd.DataFrame, along: str, keys: Sequence[str] = TEST, place: float = 0
) -> pd.DataFrame:
    """Return values at a place (or at column `place`) of curves that begin at 0 with no change."""

    def interpolated(curve: pd.DataFrame) -> Iterator[dict]:
        points = curve[curve[along] > 0].groupby(along)[BOUNDS].mean()
        at, points.loc[0.0] = place or curve["place"].iloc[0], 0.0
        points = points.sort_index()
        if points.index[-1] >= at:
            yield {name: np.interp(at, points.index, points[name]) for name in BOUNDS}

    return by_group(curves, keys, interpolated)


def group_costs(groups: pd.DataFrame) -> pd.DataFrame:
    """Return the change without the least important group, and minus that without the most."""
    rows = groups.sort_values("group")
    top, bottom = rows.drop_duplicates(TEST), rows.drop_duplicates(TEST, keep="last")
    difference = contrast(bottom, top, TEST).assign(part="difference")
    return pd.concat([difference, bottom.assign(part="least important")])


def order_gap(orders: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score, unimportant heads masked first minus important heads first."""
    up, down = (orders[orders["order"] == order] for order in ("ascending", "descending"))
    return contrast(areas(up, ends=False), areas(down, ends=False), TEST)


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

    def of_model(model: pd.DataFrame) -> Iterator[dict]:
        heads = model["importance"].to_numpy()
        draws = np.random.default_rng(1).integers(len(heads), size=(1000, len(heads)))
        for name in statistics:
            low, high = np.quantile(inequality(heads[draws], name), (0.025, 0.975))
            value = inequality(heads[None], name)[0]
            yield {"value": value, "low": low, "high": high, "part": name}

    return by_group(importance, MODEL, of_model)


def group_spread(groups: pd.DataFrame) -> pd.DataFrame:
    """Return the standard deviation of scores over groups, with errors in linear approximation."""

    def spread(model: pd.DataFrame) -> Iterator[dict]:
        apart = (model["value"] - model["value"].mean()).to_numpy()
        yield combined(apart / (len(apart) * apart.std() or np.inf), model)

    return by_group(groups, TEST, spread)


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
    rows = of_trials(least, least["trained"] / least["updates"], least["updates"])
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
    return largest(training[later], "update").dropna(subset="value")


def speed_gain(speed: pd.DataFrame, percent: float) -> pd.DataFrame:
    """Return speed without `percent` of the heads over speed with all, and its growth."""
    rows, keys = speed[speed["percent"] == percent].sort_values("batch_size"), [*MODEL, "phase"]
    large, small = rows.drop_duplicates(keys, keep="last"), rows.drop_duplicates(keys)
    growth = contrast(large, small, keys, ratio=True).query("batch_size > batch_size_2")
    growth = growth.assign(part=growth["phase"] + " at large batches over small ones")
    return pd.concat([large.assign(part=large["phase"]), growth]) if len(growth) else growth


def parameter_share(speed: pd.DataFrame) -> pd.DataFrame:
    """Return the share of parameters in the heads, by models with fewer heads."""
    rows = speed.dropna(subset="parameters").sort_values("heads_left")
    few, whole = rows.drop_duplicates(MODEL), rows.drop_duplicates(MODEL, keep="last")
    both = whole.merge(few, on=MODEL, suffixes=("", "_few")).query("heads_left > heads_left_few")
    gone = (both["heads_left"] - both["heads_left_few"]) / both["heads_left"]
    return exact(both, (1 - both["parameters_few"] / both["parameters"]) / gone)


def run_gain(bleu: pd.DataFrame, trained: pd.DataFrame, run: str, control: str) -> pd.DataFrame:
    """Return scores of runs with some settings minus scores of runs with other settings."""
    rows = bleu.merge(trained, on=MODEL)
    keys = [key for key in TEST if key != "run" and key in rows]
    both = rows.query(run).merge(rows.query(control), on=keys)
    return both.rename(columns={"run_x": "run"}).assign(value=both["score_x"] - both["score_y"])
