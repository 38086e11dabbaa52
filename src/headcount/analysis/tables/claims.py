"""The table of claims: verdicts from the other tables and figures, and from files of runs."""

import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.claims.claims import ledger
from headcount.analysis.claims.evidence import Evidence
from headcount.analysis.claims.table import caption, claims_table
from headcount.analysis.frames import Data

KINDS = ("outputs", "trained_runs", "masking", "positions", "role_facts")


def claims(data: Data) -> pd.DataFrame:
    """Return a verdict on every claim that the results measure."""
    return claims_table(Evidence(path for kind in KINDS for path in data.files(kind)))


@note
def verdict_counts(frame: pd.DataFrame) -> str:
    """Return how many claims hold, and how many need other experiments."""
    return caption(frame)


@note
def claim_rules() -> list[str]:
    """Return the notes of `claims.yaml`."""
    return ledger().notes
