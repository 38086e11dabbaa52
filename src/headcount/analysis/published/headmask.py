"""What the HeadMask paper prints. Its pairs are named as ours are, `<corpus>.<src>-<tgt>`."""

from pathlib import Path

import pandas as pd

from headcount.analysis.published.numbers import Published
from headcount.base.settings.reader import read_settings

_PAPER = read_settings(Path(__file__).with_suffix(".yaml"), Published)
SOURCE, METRIC, BESIDE_OURS = _PAPER.source, _PAPER.metric, _PAPER.beside_ours


def table(number: int) -> pd.DataFrame:
    """Table `number` (1 to 6), one printed number a row; see `PublishedTable.tidy`."""
    return _PAPER.table(f"table{number}")
