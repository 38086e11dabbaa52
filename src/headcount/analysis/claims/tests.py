"""Tests of a claim: numbers of several models against the claim's limits."""

from math import erfc, isnan, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from headcount.analysis.claims.claims import Rule
from headcount.analysis.claims.estimates import BOUNDS
from headcount.analysis.stats import Z, paired_t

_SMALLEST_P = 1 / 1001  # of 1,000 resamples
_SCALES = {
    "difference": (lambda number: number, lambda number: number),
    "ratio": (lambda number: np.log(np.maximum(number, 1e-9)), np.exp),
    "correlation": (lambda number: np.arctanh(np.clip(number, -0.9999, 0.9999)), np.tanh),
}


def decide(rows: pd.DataFrame, test: Rule) -> dict[str, Any] | None:
    """Return the direction in which the numbers point, and the part and numbers that decide it.

    All parts must hold, or one must fail, by Bonferroni's p. None if no number has an interval.
    """
    parts = dict(list(rows.groupby("part"))) if "part" in rows else {"": rows}
    given = test.model_dump(include={"above", "below"}, exclude_none=True)
    limits = [(side, part, limit[part] if isinstance(limit, dict) else limit)
              for side, limit in given.items()
              for part in (limit if isinstance(limit, dict) else parts)]  # fmt: skip
    known = {part: group.dropna(subset="value") for part, group in parts.items()}
    estimates = [estimate(known[part], limit, side, test) | {"part": part}
             for side, part, limit in limits if len(known.get(part, ""))]  # fmt: skip
    table = pd.DataFrame(estimates)
    if table.empty or table["q"].isna().all():
        return None
    table = table.iloc[(table["value"] - table["limit"]).abs().argsort()].fillna({"q": 1.0})
    against, favour = (table["q"].where(table["right"] == side, 1) for side in (False, True))
    missing = len(estimates) < len(limits)
    p_fails, p_holds = against.min() * len(table), 1.0 if missing else favour.max()
    part = table.loc[against.idxmin() if p_fails < p_holds else favour.idxmax()].to_dict()
    p = min(p_fails, p_holds, 1.0)
    numbers = {"sure": p == 0, "p": p if part["tested"] else nan, "tests": len(table)}
    return part | numbers | {"holds": p_holds <= p_fails, "missing": missing}


def estimate(rows: pd.DataFrame, limit: float, side: str, test: Rule) -> dict[str, Any]:
    """Return the mean of the models with its interval, and q, its p against the limit.

    Without a test, q is 0 if the limit is out of bounds. It is 1 if a model is on the other side.
    """
    to, back = _SCALES[test.scale]
    scaled = to(rows.reindex(columns=BOUNDS).astype(float)) - to(limit)
    models = scaled.groupby([rows["pair"], rows["seed"]]).mean(skipna=False)
    seeds = _by_seed(models["value"])
    value, low, high = models.mean(skipna=False)
    if over_seeds := test.about == "trainings" and len(seeds) > 1:
        value, (low, high, q), tested = seeds.mean(), paired_t(seeds.to_numpy()), True
    elif tested := low != high and bool(rows.get("tested", pd.Series([True])).all()):
        q = stouffer(rows) if "shuffled_p" in rows else p_of_interval(value, low, high)
    else:
        q = float(low <= 0 <= high)
    against = models["high"] < 0 if value > 0 else models["low"] > 0
    opposed = bool(against.any()) and not over_seeds
    scope = "trainings" if over_seeds else "one training" if len(models) == 1 else "these models"
    numbers = back(np.array([value, low, high]) + to(limit)).tolist()
    return dict(zip(BOUNDS, numbers, strict=True)) | {
        "q": 1.0 if opposed else q, "opposed": opposed,
        "right": bool(value and (value > 0) == (side == "above")), "side": side, "limit": limit,
        "tested": tested, "scope": scope, "seeds": len(seeds) if over_seeds else len(models),
    }  # fmt: skip


def _by_seed(models: pd.Series) -> pd.Series:
    """Return means over pairs with several seeds, because pairs of a seed draw the same masks."""
    wide = models.unstack("pair")
    whole = wide.loc[:, wide.count() > 1].dropna()
    return (whole if len(whole.columns) else wide).mean(axis=1)


def stouffer(rows: pd.DataFrame) -> float:
    """Return the two-sided p that all values are 0, from the p of each of them."""
    z = np.sign(rows["value"]) * ndtri(1 - rows["shuffled_p"].clip(1e-12) / 2)
    return erfc(abs(z.sum()) / sqrt(2 * len(rows)))


def p_of_interval(value: float, low: float, high: float) -> float:
    """Return the two-sided p that a number with this 95 % interval is 0 (Altman & Bland 2011).

    The error is that of the half on the side of 0. p is not below what the resamples can show.
    """
    reach = value - low if value > 0 else high - value
    if isnan(reach) or not reach:
        return nan if isnan(reach) else _SMALLEST_P
    return max(erfc(abs(value) / (reach / Z) / sqrt(2)), _SMALLEST_P)
