"""What Voita et al. print. Its pairs are named as ours are."""

from pathlib import Path

import pandas as pd

from headcount.analysis.published.numbers import Published
from headcount.base.settings.reader import read_settings

_PAPER = read_settings(Path(__file__).with_suffix(".yaml"), Published)
SOURCE, METRIC, BESIDE_OURS = _PAPER.source, _PAPER.metric, _PAPER.beside_ours
table = _PAPER.table
READ_OFF = "The paper's values are read off its drawing, within 0.005."


def table2() -> pd.DataFrame:
    """Table 2, a score a row: heads (e/d/d-e), pair, training (none, trained, scratch), value."""
    full = table("table2_baseline").assign(training="none")
    return pd.concat([full, table("table2_wmt"), table("table2_subtitles")], ignore_index=True)


def dependency_scores() -> pd.DataFrame:
    """Return table 1: pair, relation, direction, accuracy of the best head, baseline, margin."""
    wide = table("table1").pivot_table("value", ["pair", "relation_direction"], "of", sort=False)
    scores = _split(wide.reset_index().rename(columns={"best": "accuracy"}))
    scores[["accuracy", "baseline"]] /= 100
    ordered = scores.sort_values("pair", ascending=False, kind="stable", ignore_index=True)
    return ordered.assign(margin=ordered["accuracy"] - ordered["baseline"])


def dependency_scores_by_pair() -> pd.DataFrame:
    """Return figure 4 in the same columns; its baseline is the same for all pairs."""
    scores = _split(table("figure4")).rename(columns={"value": "accuracy"})
    of_baseline, keys = scores["pair"] == "baseline", ["relation", "direction"]
    baseline = scores[of_baseline].set_index(keys)["accuracy"].rename("baseline")
    return scores[~of_baseline].join(baseline, on=keys)


def ranked_heads() -> pd.DataFrame:
    """Return figures 1 and 2: pair, layer and rank from 1, relevance, confidence, function.

    Figure 2 has no confidence. A head without a function has a missing one.
    """
    keys = ["pair", "layer", "rank"]
    heads = pd.concat([table("figure1_relevance"), table("figure2")], ignore_index=True)
    confidence = table("figure1_confidence").rename(columns={"value": "confidence"})
    heads = heads.rename(columns={"value": "relevance"}).merge(confidence, "left", keys)
    marked = [
        (pair, layer, rank, function)
        for pair, layers in _PAPER.functions.items()
        for layer, ranks in layers.items()
        for rank, function in ranks.items()
    ]
    return heads.merge(pd.DataFrame(marked, columns=[*keys, "function"]), "left", keys)


def functions_left() -> pd.DataFrame:
    """Return figure 8: pair, scope, heads_left, function, heads."""
    counts = table("figure8").rename(columns={"value": "heads"})
    return counts.assign(pair="opensubtitles.en-ru", scope="enc_self")


def _split(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with the column relation_direction as two columns."""
    parts = scores["relation_direction"].str.split(" ", expand=True)
    return scores.drop(columns="relation_direction").assign(relation=parts[0], direction=parts[1])
