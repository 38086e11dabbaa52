"""Areas under curves of BLEU by heads masked, from headmask.csv of runs."""

import numpy as np
import pandas as pd

from headcount.findings.claims.estimates import EFFECT
from headcount.findings.claims.evidence import MODEL, TEST

MASKED = ["test_set", "ranking", "order", "index", "heads_masked", "bleu", *EFFECT]


def by_own_ranking(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows in which heads are masked by each model's own ranking."""
    return rows[rows["ranking"] == "own"]


def groups_masked(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with one group of heads masked alone, by each model's own ranking."""
    own = by_own_ranking(rows)
    return own[own["order"] == "group"]


def weights(masked: pd.Series) -> np.ndarray:
    """What each point of a curve weighs in its mean over the shares of heads (trapezoids)."""
    places = masked.to_numpy(dtype=float)
    steps = np.diff(places) / (places[-1] - places[0])
    return (np.append(steps, 0) + np.append(0, steps)) / 2


def areas_kept(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    """Mean share of BLEU kept along one order, over test sets, as column `kept`: one a model."""
    kept = []
    for key, found in rows[rows["order"] == order].groupby(TEST, sort=False):
        curve = found.groupby("heads_masked")["bleu"].mean()
        area = weights(curve.index.to_series()) @ curve.to_numpy() / curve.iloc[0]
        kept.append((*key, area))
    table = pd.DataFrame(kept, columns=[*TEST, "kept"])
    return table.groupby(MODEL, sort=False)["kept"].mean().reset_index()


def area_gaps(rows: pd.DataFrame) -> pd.DataFrame:
    """`areas_kept` of ascending minus that of descending, as column `gap`: one a model."""
    own = by_own_ranking(rows)
    sides = [
        areas_kept(own, order).set_index(MODEL)["kept"] for order in ("ascending", "descending")
    ]
    return (sides[0] - sides[1]).rename("gap").reset_index()
