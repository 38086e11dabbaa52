"""What the HeadMask paper prints. Its pairs are named as ours are, `<corpus>.<src>-<tgt>`."""

from pathlib import Path

import pandas as pd

from headcount.findings.published.numbers import read_published

_FILE = Path(__file__).with_suffix(".yaml")


def source() -> str:
    """Authors, year and archive number."""
    return read_published(_FILE).source


def metric() -> str:
    """Which BLEU it prints, and who says so."""
    return read_published(_FILE).metric


def table(number: int) -> pd.DataFrame:
    """Table `number` (1 to 6), one printed number a row; see `PublishedTable.tidy`."""
    return read_published(_FILE).tables[f"table{number}"].tidy()
