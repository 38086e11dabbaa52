"""Loss of one model without its least important heads."""

import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.frames import RUN

MOST = 0.02
"""Largest rise of the loss without heads that may go, in nats per target token."""


def heads_to_remove(removal: pd.DataFrame) -> pd.DataFrame:
    """Return the steps of removal. `may_go`: the step and all smaller ones cost little."""
    rows = removal.sort_values([*RUN, "percent"])
    little = (rows["high"] < MOST) | (rows["percent"] == 0)
    may_go = little.groupby([rows[key] for key in RUN]).cummin()
    return rows.assign(may_go=may_go.map({True: "yes", False: "no"}))


@note
def most_rise() -> str:
    """Return the limit as text."""
    return f"{MOST:g}"
