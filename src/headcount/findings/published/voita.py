"""What Voita et al. print of pruned heads. Its pairs are named as ours are."""

from pathlib import Path

import pandas as pd

from headcount.findings.published.numbers import read_published

_FILE = Path(__file__).with_suffix(".yaml")
_CORPORA = ("wmt", "subtitles")


def source() -> str:
    """Authors, year and archive number."""
    return read_published(_FILE).source


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


def _both(figure: str) -> pd.DataFrame:
    tables = [_tidy(f"{figure}_{corpus}") for corpus in _CORPORA]
    return pd.concat(tables, ignore_index=True)


def _tidy(name: str) -> pd.DataFrame:
    return read_published(_FILE).tables[name].tidy().drop(columns="statistic")
