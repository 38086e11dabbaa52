"""The table of claims: verdicts from the other tables and figures, and from files of runs."""

import pandas as pd

from headcount.analysis.claims.claims import Evidence
from headcount.analysis.claims.phenomena import phenomena_table
from headcount.analysis.claims.table import claims_table
from headcount.analysis.frames import Data

KINDS = ("outputs", "trained_runs", "masking", "positions", "role_facts", "pair_transfer")


def claims(data: Data) -> pd.DataFrame:
    """Return a verdict on every claim that the results measure."""
    return claims_table(_evidence(data))


def phenomena(data: Data) -> pd.DataFrame:
    """Return which headline results of the papers the results show."""
    return phenomena_table(_evidence(data))


def _evidence(data: Data) -> Evidence:
    return Evidence(path for kind in KINDS for path in data.files(kind))
