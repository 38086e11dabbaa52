"""What Voita et al. print. Its pairs are named as ours are."""

from pathlib import Path

import pandas as pd

from headcount.findings.published.numbers import read_published

_FILE = Path(__file__).with_suffix(".yaml")
_CORPORA = ("wmt", "subtitles")
READ_OFF = "The paper's values are read off its drawing, within 0.005."


def source() -> str:
    """Authors, year and archive number."""
    return read_published(_FILE).source


def metric() -> str:
    """Which BLEU it prints, and who says so."""
    return read_published(_FILE).metric


def table2() -> pd.DataFrame:
    """Table 2, a score a row: heads (e/d/d-e), pair, training (none, trained, scratch), value."""
    full = _tidy("table2_baseline").assign(training="none")
    return pd.concat([full, *(_tidy(f"table2_{corpus}") for corpus in _CORPORA)], ignore_index=True)


def point_masses() -> pd.DataFrame:
    """Figure 6's printed masses: log_alpha, mass (p_zero, p_one), value."""
    return _tidy("figure6").astype({"log_alpha": float})


def bleu_by_heads() -> pd.DataFrame:
    """Figure 7: heads_left (encoder self-attention), pair, value (BLEU)."""
    return _both("figure7").astype({"heads_left": int})


def heads_by_kind() -> pd.DataFrame:
    """Figure 9: pruned (heads of the whole model), pair, kind, value (heads left)."""
    return _both("figure9").astype({"pruned": int, "value": int})


def decoder_heads_by_layers() -> pd.DataFrame:
    """Figure 10: pruned (heads of the whole model), pair, kind, layers (from 1), value."""
    kinds = [_tidy(f"figure10_{kind}") for kind in ("dec_self", "dec_enc")]
    return pd.concat(kinds, ignore_index=True).astype({"pruned": int, "value": int})


def dependency_scores() -> pd.DataFrame:
    """Table 1: relation, direction, pair, of (best, baseline), value (0 to 1)."""
    table = _split(_tidy("table1"))
    return table.assign(value=table["value"] / 100)


def dependency_scores_by_pair() -> pd.DataFrame:
    """Figure 4: relation, direction, pair (one is called baseline), value (0 to 1)."""
    return _split(_tidy("figure4"))


def dependent_positions() -> pd.DataFrame:
    """Figure 3: relation, offset (dependent less governor, in words), value (share)."""
    names = [name for name in read_published(_FILE).tables if name.startswith("figure3_")]
    return pd.concat(map(_tidy, names), ignore_index=True).astype({"offset": int})


def ranked_heads() -> pd.DataFrame:
    """Figures 1 and 2: pair, layer, rank (both from 1), relevance, confidence, function.

    Confidence is NaN for the pairs of Figure 2; function is empty for a head that has none.
    """
    names = ("figure1_relevance", "figure2_en_de", "figure2_en_fr")
    heads = pd.concat(map(_tidy, names), ignore_index=True).rename(columns={"value": "relevance"})
    sure = _tidy("figure1_confidence").rename(columns={"value": "confidence"})
    heads = heads.merge(sure, on=["pair", "layer", "rank"], how="left")
    marked = read_published(_FILE).functions
    keys = zip(heads["pair"], heads["layer"], heads["rank"], strict=True)
    heads["function"] = [marked[pair].get(layer, {}).get(rank, "") for pair, layer, rank in keys]
    return heads.astype({"layer": int, "rank": int})


def functions_by_heads() -> pd.DataFrame:
    """Figure 8: heads_left (encoder self-attention), function, value (heads)."""
    return _tidy("figure8").astype({"heads_left": int, "value": int})


def _split(table: pd.DataFrame) -> pd.DataFrame:
    """The column relation_direction as two."""
    parts = table["relation_direction"].str.split(" ", expand=True)
    return table.drop(columns="relation_direction").assign(relation=parts[0], direction=parts[1])


def _both(figure: str) -> pd.DataFrame:
    tables = [_tidy(f"{figure}_{corpus}") for corpus in _CORPORA]
    return pd.concat(tables, ignore_index=True)


def _tidy(name: str) -> pd.DataFrame:
    return read_published(_FILE).tables[name].tidy().drop(columns="statistic")
