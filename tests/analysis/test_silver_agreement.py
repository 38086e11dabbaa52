"""Heads that silver links choose beside those that gold links choose, from a few rows."""

import pandas as pd
import pytest

from headcount.analysis.tables.general.silver import silver_agreement
from headcount.data.word_links.links import LinkedPair, write_linked

RUN = {"pair": "a.en-de", "run": "baseline", "seed": 1, "kind": "dec_enc", "layer": 0}


def rates(aers: list[float], ranks: list[int]) -> pd.DataFrame:
    """Return rows of six heads, and rows that are no such heads."""
    heads = [
        RUN | {"system": "head", "step": step, "words": words, "head": n, "aer": aer, "rank": rank}
        for step, words in (("output", "content"), ("input", "content"), ("output", "all"))
        for n, (aer, rank) in enumerate(zip(aers, ranks, strict=True))
    ]
    return pd.DataFrame([*heads, heads[0] | {"system": "layer", "head": None, "rank": None}])


def test_choices_correlation_and_error_rate(tmp_path):
    """Silver links put head 1 first and swap the fourth and the fifth head.

    Of ranks 1 to 6 that swap three pairs of neighbours, ρ = 1 − 6 · 6 / (6 · 35).
    """
    gold = rates([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1, 2, 3, 4, 5, 6])
    silver = rates([0.25, 0.15, 0.45, 0.35, 0.65, 0.55], [2, 1, 3, 5, 4, 6])
    words = [["a"], ["b"], ["c"]]
    folder = tmp_path / "a.en-de" / "links"
    folder.mkdir(parents=True)
    paths = [folder / "test.gold.jsonl", folder / "test.silver.jsonl"]
    # Three links found, of which one is sure and one more possible, and two sure links.
    write_linked(
        paths[0], iter([LinkedPair(words, words, [[0, 0], [1, 1]], [[0, 0], [1, 1], [2, 1]])])
    )
    write_linked(paths[1], iter([LinkedPair(words, words, [[0, 0], [2, 1], [2, 2]], [[1, 1]])]))
    (row,) = silver_agreement(gold, silver, paths).to_dict("records")
    assert (row["gold_head"], row["aer"]) == ("dec_enc.0.0", 0.1)
    assert (row["silver_head"], row["silver_head_aer"]) == ("dec_enc.0.1", 0.2)
    assert row["shared"] == 3
    assert row["spearman"] == pytest.approx(1 - 36 / 210)
    assert row["silver_aer"] == pytest.approx(1 - (1 + 2) / (3 + 2))
