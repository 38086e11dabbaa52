"""What Michel et al. print of heads removed from trained models. Layers and heads count from 1."""

from pathlib import Path

import pandas as pd

from headcount.findings.published.numbers import read_published

_FILE = Path(__file__).with_suffix(".yaml")
PAIR = "wmt14.en-fr"
SMALL_PAIR = "iwslt14.de-en"
CLASSIFIER = "BERT"
CLASSIFIER_HEADS = 12  # of a layer


def source() -> str:
    """Authors, year and archive number."""
    return read_published(_FILE).source


def metric() -> str:
    """Which BLEU it prints, and who says so."""
    return read_published(_FILE).metric


def single_heads() -> pd.DataFrame:
    """Table 1, encoder self-attention: layer, head, value (BLEU change), significant (p < 0.01)."""
    return _with_significance("table1", ["layer", "head"]).astype({"head": int})


def all_but_one(number: int) -> pd.DataFrame:
    """Table 2 or 5: layer, kind, value (BLEU change with one head), significant (p < 0.01)."""
    return _with_significance(f"table{number}", ["layer", "kind"])


def transfer() -> float:
    """Pearson's r of the effects of removing each head on two test sets."""
    return float(_tidy("figure2")["value"].iloc[0])


def classifier_all_but_one(number: int) -> pd.DataFrame:
    """Table 3 or 6, BERT: layer, value (change of accuracy with one head), none significant."""
    return _tidy(f"table{number}")[["layer", "value"]].astype({"layer": int})


def classifier_transfer() -> float:
    """Pearson's r of the effects of removing each head of BERT, on matched and mismatched."""
    return float(_tidy("figure2_bert")["value"].iloc[0])


def classifier_prunable() -> dict[str, int]:
    """Percent of BERT's heads that can go by importance without a noticeable loss, by task."""
    table = _tidy("prunable_bert").astype({"value": int})
    return dict(zip(table["task"], table["value"], strict=True))


def curves() -> pd.DataFrame:
    """Figures 3, 4 and 6d: pair, scope, order, percent (of heads pruned), value (BLEU)."""
    parts = [
        _tidy("figure3").assign(pair=PAIR, scope="all"),
        _tidy("figure4").assign(pair=PAIR, order="importance"),
        _tidy("figure6d").assign(pair=SMALL_PAIR, scope="all"),
    ]
    table = pd.concat(parts, ignore_index=True).astype({"percent": int})
    return table[["pair", "scope", "order", "percent", "value"]]


def kept_by_epoch() -> pd.DataFrame:
    """Figure 5: epoch, percent (of heads pruned), value (percent of that epoch's BLEU)."""
    return _tidy("figure5").astype({"epoch": int, "percent": int})


def speed() -> pd.DataFrame:
    """Table 4, BERT: heads (percent left), batch_size, mean and sd of examples per second."""
    wide = _tidy("table4").pivot(index=["heads", "batch_size"], columns="measure", values="value")
    return wide.reset_index().astype({"heads": int, "batch_size": int})


def _with_significance(name: str, keys: list[str]) -> pd.DataFrame:
    flags = _tidy(f"{name}_significant").rename(columns={"value": "significant"})
    table = _tidy(name).merge(flags, on=keys, validate="one_to_one")
    return table.astype({"layer": int, "significant": int})


def _tidy(name: str) -> pd.DataFrame:
    return read_published(_FILE).tables[name].tidy().drop(columns="statistic")
