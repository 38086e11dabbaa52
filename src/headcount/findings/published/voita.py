"""What Voita et al. print. Its pairs are named as ours are."""

from pathlib import Path

import pandas as pd

from headcount.base.settings.reader import read_settings
from headcount.findings.published.numbers import Published

_PAPER = read_settings(Path(__file__).with_suffix(".yaml"), Published)
SOURCE, METRIC, BESIDE_OURS = _PAPER.source, _PAPER.metric, _PAPER.beside_ours
READ_OFF = "The paper's values are read off its drawing, within 0.005."


def table2() -> pd.DataFrame:
    """Table 2, a score a row: heads (e/d/d-e), pair, training (none, trained, scratch), value."""
    full = _PAPER.table("table2_baseline").assign(training="none")
    return pd.concat([full, _PAPER.table("table2_wmt", "table2_subtitles")], ignore_index=True)


def point_masses() -> pd.DataFrame:
    """Figure 6's printed masses: log_alpha, mass (p_zero, p_one), value."""
    return _PAPER.table("figure6")


def bleu_by_heads() -> pd.DataFrame:
    """Figure 7: heads_left (encoder self-attention), pair, value (BLEU)."""
    return _PAPER.table("figure7_wmt", "figure7_subtitles")


def heads_by_kind() -> pd.DataFrame:
    """Figure 9: pruned (heads of the whole model), pair, kind, value (heads left)."""
    return _PAPER.table("figure9_wmt", "figure9_subtitles")


def decoder_heads_by_layers() -> pd.DataFrame:
    """Figure 10: pruned (heads of the whole model), pair, kind, layers (from 1), value."""
    return _PAPER.table("figure10_dec_self", "figure10_dec_enc")


def dependency_scores() -> pd.DataFrame:
    """Table 1: pair, relation, direction, accuracy (of the best head), baseline; 0 to 1."""
    table = _split(_PAPER.table("table1"))
    parts = [
        of_pair.pivot_table("value", ["pair", "relation", "direction"], "of", sort=False) / 100
        for _, of_pair in table.groupby("pair", sort=False)
    ]
    return pd.concat(parts).reset_index().rename(columns={"best": "accuracy"})


def dependency_scores_by_pair() -> pd.DataFrame:
    """Figure 4: the same columns; one baseline for all pairs and both directions."""
    scores = _split(_PAPER.table("figure4")).rename(columns={"value": "accuracy"})
    of_baseline, keys = scores["pair"] == "baseline", ["relation", "direction"]
    baseline = scores[of_baseline].set_index(keys)["accuracy"].rename("baseline")
    return scores[~of_baseline].join(baseline, on=keys)


def dependent_positions() -> pd.DataFrame:
    """Figure 3: relation, offset (dependent less governor, in words), value (share)."""
    return _PAPER.table(*(name for name in _PAPER.tables if name.startswith("figure3_")))


def ranked_heads() -> pd.DataFrame:
    """Figures 1 and 2: pair, layer, rank (both from 1), relevance, confidence, function.

    Confidence is NaN for the pairs of Figure 2; function is empty for a head that has none.
    """
    heads = _PAPER.table("figure1_relevance", "figure2_en_de", "figure2_en_fr")
    heads = heads.rename(columns={"value": "relevance"})
    sure = _PAPER.table("figure1_confidence").rename(columns={"value": "confidence"})
    heads = heads.merge(sure, on=["pair", "layer", "rank"], how="left")
    marked = _PAPER.functions
    keys = zip(heads["pair"], heads["layer"], heads["rank"], strict=True)
    heads["function"] = [marked[pair].get(layer, {}).get(rank, "") for pair, layer, rank in keys]
    return heads


def functions_by_heads() -> pd.DataFrame:
    """Figure 8: heads_left (encoder self-attention), function, value (heads)."""
    return _PAPER.table("figure8")


def _split(table: pd.DataFrame) -> pd.DataFrame:
    """The column relation_direction as two."""
    parts = table["relation_direction"].str.split(" ", expand=True)
    return table.drop(columns="relation_direction").assign(relation=parts[0], direction=parts[1])
