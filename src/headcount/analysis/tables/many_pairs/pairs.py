"""Heads of one model that matter to several pairs or to one, and pruning by other pairs' heads."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from headcount.analysis.captions import note, scored
from headcount.analysis.frames import HEAD, Facts, grouped
from headcount.analysis.scores import over_seeds
from headcount.analysis.stats import correlate, wilson
from headcount.analysis.tables.headmask.importance import CHANGE

TOP, LOW = 0.25, 0.5
"""Shares of the heads: the most important ones, and the less important ones."""
_HALVES = ["importance_first_half", "importance_second_half"]
_POINT = ["pair", "test_set", "run", "share", "pruned_on", "heads_masked"]
_DELTA = ["delta", "delta_low", "delta_high"]
RANKS = ["pair", "run", "seed", "other_pair", "heads", "spearman", "low", "high", "p", "ceiling"]
RANKS += ["overlap", "overlap_low", "overlap_high", "overlap_p", "overlap_ceiling"]


def transfer(pair_transfer: pd.DataFrame) -> pd.DataFrame:
    """Return scores of every pair with heads masked by every ranking, means over seeds."""
    rows = over_seeds(pair_transfer, _POINT, means=_DELTA, draw="draw", bootstrap=CHANGE)
    own, pairs = rows["pruned_on"] == rows["pair"], rows["pruned_on"].isin(rows["pair"])
    return rows.assign(ranking=np.select([own, pairs], ["own", "other"], rows["pruned_on"]))


def ranks(shared_importance: pd.DataFrame) -> pd.DataFrame:
    """Return rank correlation and overlap of the most important heads for every two pairs.

    p of the correlation is by shuffling heads, of the overlap exact for random heads. Ceilings are
    from halves of the data: the geometric mean of both pairs' reliabilities by Spearman and Brown,
    and the mean overlap of halves.
    """
    rows = []
    for run, seed, models in _models(shared_importance):
        halves = {pair: [model[half] for half in _HALVES] for pair, model in models.items()}
        shared = {pair: _overlap(*both)[0] for pair, both in halves.items()}
        trust = {pair: _reliability(*both) for pair, both in halves.items()}
        for one, other in combinations(models, 2):
            both = [models[pair]["importance"] for pair in (one, other)]
            ends = correlate(*both, ranks=True), np.sqrt(trust[one] * trust[other])
            overlaps = *_overlap(*both), (shared[one] + shared[other]) / 2
            rows.append((one, run, seed, other, len(both[0]), *ends[0], ends[1], *overlaps))
    return pd.DataFrame(rows, columns=RANKS)


def _models(importance: pd.DataFrame) -> Iterator[tuple[str, int, dict[str, pd.DataFrame]]]:
    """Yield run, seed, and for every pair the importance of all heads and of halves of the data."""
    for (run, seed), rows in grouped(importance, ["run", "seed"]):
        rows = rows.pivot(index=HEAD, columns=["pair", "statistic"], values="value")
        yield run, seed, {pair: rows[pair] for pair in rows.columns.unique("pair")}


def _reliability(first: pd.Series, second: pd.Series) -> float:
    """Return the reliability of ranks by all data, from ranks by halves; not below 0."""
    rho = max(0.0, first.corr(second, "spearman"))
    return 2 * rho / (1 + rho)


def _overlap(first: pd.Series, second: pd.Series) -> tuple[float, float, float, float]:
    """Return the share of the most important heads that two rankings have in common.

    Wilson's interval and the p that random heads overlap as much (hypergeometric) follow it.
    """
    from scipy import stats  # takes half a second

    count = _most(len(first))
    tops = [side.nlargest(count).index for side in (first, second)]
    hits = len(tops[0].intersection(tops[1]))
    p = float(stats.hypergeom.sf(hits - 1, len(first), count, count))
    return hits / count, *wilson(hits, count), p


def _most(heads: int) -> int:
    """Return the number of the most important heads."""
    return max(1, round(TOP * heads))


def own_heads(shared_importance: pd.DataFrame) -> pd.DataFrame:
    """Return heads that are important to one pair and unimportant to all others.

    They are among the most important heads by both halves of one pair's data, and among the less
    important ones by both halves of all others. Ranks are by all data, from 1.
    """
    rows = []
    for run, seed, models in _models(shared_importance):
        places = {pair: model.rank(ascending=False) for pair, model in models.items()}
        for pair, own in places.items():
            others = pd.concat([place for name, place in places.items() if name != pair])
            best = others[_HALVES].min(axis=1).groupby(level=HEAD).min()
            chosen = (own[_HALVES].max(axis=1) <= _most(len(own))) & (best > LOW * len(own))
            elsewhere = others["importance"].groupby(level=HEAD).min()
            ranked = own[["importance"]].assign(elsewhere=elsewhere)[chosen]
            rows.append(ranked.reset_index().assign(pair=pair, run=run, seed=seed))
    names = {"importance": "rank", "elsewhere": "best_rank_elsewhere"}
    columns = ["pair", "run", "seed", *HEAD, *names.values()]
    return pd.concat(rows).rename(columns=names).reindex(columns=columns)


def both_ways(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean correlation over seeds for each pair with each, and 1 with itself."""
    pairs = pd.unique(frame[["pair", "other_pair"]].to_numpy().ravel())
    parts = [frame, frame.rename(columns={"pair": "other_pair", "other_pair": "pair"})]
    for run in frame["run"].unique():
        parts.append(
            pd.DataFrame({"run": run, "pair": pairs, "other_pair": pairs, "spearman": 1.0})
        )
    rows = pd.concat(parts).groupby(["run", "pair", "other_pair"])["spearman"].mean()
    order = pd.MultiIndex.from_product(
        [frame["run"].unique(), pairs, pairs], names=rows.index.names
    )
    return rows.reindex(order).reset_index()


@note
def transferred_sentences(pair_transfer_facts: Facts) -> str:
    """Return the sentences of `scored` on models without another pair's heads."""
    return scored(pair_transfer_facts)


@note
def most_important() -> str:
    """Return what counts as important as a sentence."""
    return f"Most important: the first {TOP:.0%} of the heads. Less important: the last {LOW:.0%}."
