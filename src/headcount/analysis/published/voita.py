"""Numbers that Voita et al. print. Pairs have names like ours."""

import pandas as pd

from headcount.analysis import read_beside
from headcount.analysis.published.numbers import Published

PAPER: Published = read_beside(__file__, Published)
table = PAPER.table


def dependency_scores() -> pd.DataFrame:
    """Return table 1: pair, relation, direction, accuracy of the best head, baseline, margin."""
    wide = table("table1").pivot_table("value", ["pair", "relation_direction"], "of", sort=False)
    scores = _split(wide.reset_index().rename(columns={"best": "accuracy"}))
    scores[["accuracy", "baseline"]] /= 100
    ordered = scores.sort_values("pair", ascending=False, kind="stable", ignore_index=True)
    return ordered.assign(margin=ordered["accuracy"] - ordered["baseline"])


def dependency_scores_by_pair() -> pd.DataFrame:
    """Return figure 4 in the same columns. Its baseline is the same for all pairs."""
    scores = _split(table("figure4", "accuracy"))
    of_baseline, keys = scores["pair"] == "baseline", ["relation", "direction"]
    baseline = scores[of_baseline].set_index(keys)["accuracy"].rename("baseline")
    return scores[~of_baseline].join(baseline, on=keys)


def ranked_heads() -> pd.DataFrame:
    """Return figures 1 and 2: pair, layer and rank from 1, relevance, confidence, function."""
    keys = ["pair", "layer", "rank"]
    heads = pd.concat([table("figure1_relevance", "relevance"), table("figure2", "relevance")])
    heads = heads.merge(table("figure1_confidence", "confidence"), "left", keys)
    marked = [
        (pair, layer, rank, function)
        for pair, layers in PAPER.functions.items()
        for layer, ranks in layers.items()
        for rank, function in ranks.items()
    ]
    return heads.merge(pd.DataFrame(marked, columns=[*keys, "function"]), "left", keys)


def _split(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with the column relation_direction as two columns."""
    parts = scores["relation_direction"].str.split(" ", expand=True)
    return scores.drop(columns="relation_direction").assign(relation=parts[0], direction=parts[1])
