"""What Michel et al. print of heads removed from trained models. Layers and heads count from 1."""

from pathlib import Path

import pandas as pd

from headcount.analysis.published.numbers import Published
from headcount.base.settings.reader import read_settings

_PAPER = read_settings(Path(__file__).with_suffix(".yaml"), Published)
SOURCE, METRIC, BESIDE_OURS = _PAPER.source, _PAPER.metric, _PAPER.beside_ours
table = _PAPER.table
PAIR = "wmt14.en-fr"
SMALL_PAIR = "iwslt14.de-en"
CLASSIFIER = "BERT"
CLASSIFIER_HEADS = 12  # of a layer


def single_heads() -> pd.DataFrame:
    """Table 1, encoder self-attention: layer, head, value (BLEU change), significant (p < 0.01)."""
    return _with_significance("table1", ["layer", "head"])


def all_but_one(number: int) -> pd.DataFrame:
    """Table 2 or 5: layer, kind, value (BLEU change with one head), significant (p < 0.01)."""
    return _with_significance(f"table{number}", ["layer", "kind"])


def transfer() -> float:
    """Pearson's r of the effects of removing each head on two test sets."""
    return table("figure2")["value"].item()


def classifier_all_but_one(number: int) -> pd.DataFrame:
    """Table 3 or 6, BERT: layer, value (change of accuracy with one head), none significant."""
    return table(f"table{number}")[["layer", "value"]]


def classifier_transfer() -> float:
    """Pearson's r of the effects of removing each head of BERT, on matched and mismatched."""
    return table("bert_figure2")["value"].item()


def classifier_prunable() -> dict[str, int]:
    """Percent of BERT's heads that can go by importance without a noticeable loss, by task."""
    return table("prunable_bert").set_index("task")["value"].to_dict()


def curves() -> pd.DataFrame:
    """Figures 3, 4 and 6d: pair, scope, order, percent (of heads pruned), value (BLEU)."""
    parts = [
        table("figure3").assign(pair=PAIR, scope="all"),
        table("figure4").assign(pair=PAIR, order="importance"),
        table("figure6d").assign(pair=SMALL_PAIR, scope="all"),
    ]
    return pd.concat(parts, ignore_index=True)[["pair", "scope", "order", "percent", "value"]]


def speed() -> pd.DataFrame:
    """Table 4, BERT: heads (percent left), batch_size, mean and sd of examples per second."""
    wide = table("table4").pivot(index=["heads", "batch_size"], columns="measure", values="value")
    return wide.reset_index()


def _with_significance(name: str, keys: list[str]) -> pd.DataFrame:
    flags = table(f"significant_{name}").rename(columns={"value": "significant"})
    return table(name).merge(flags, on=keys, validate="one_to_one")
