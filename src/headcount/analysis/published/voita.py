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
    """Table 1: pair, relation, direction, accuracy (of the best head), baseline; 0 to 1."""
    scores = _split(table("table1"))
    parts = [
        of_pair.pivot_table("value", ["pair", "relation", "direction"], "of", sort=False) / 100
        for _, of_pair in scores.groupby("pair", sort=False)
    ]
    return pd.concat(parts).reset_index().rename(columns={"best": "accuracy"})


def dependency_scores_by_pair() -> pd.DataFrame:
    """Figure 4: the same columns; one baseline for all pairs and both directions."""
    scores = _split(table("figure4")).rename(columns={"value": "accuracy"})
    of_baseline, keys = scores["pair"] == "baseline", ["relation", "direction"]
    baseline = scores[of_baseline].set_index(keys)["accuracy"].rename("baseline")
    return scores[~of_baseline].join(baseline, on=keys)


def ranked_heads() -> pd.DataFrame:
    """Figures 1 and 2: pair, layer, rank (both from 1), relevance, confidence, function.

    Confidence is NaN for the pairs of Figure 2; function is empty for a head that has none.
    """
    heads = pd.concat([table("figure1_relevance"), table("figure2")], ignore_index=True)
    heads = heads.rename(columns={"value": "relevance"})
    sure = table("figure1_confidence").rename(columns={"value": "confidence"})
    heads = heads.merge(sure, on=["pair", "layer", "rank"], how="left")
    marked = _PAPER.functions
    keys = zip(heads["pair"], heads["layer"], heads["rank"], strict=True)
    heads["function"] = [marked[pair].get(layer, {}).get(rank, "") for pair, layer, rank in keys]
    return heads


def _split(scores: pd.DataFrame) -> pd.DataFrame:
    """The column relation_direction as two."""
    parts = scores["relation_direction"].str.split(" ", expand=True)
    return scores.drop(columns="relation_direction").assign(relation=parts[0], direction=parts[1])
