"""When heads become redundant: pruning profiles at points of the training."""

from pathlib import Path

import numpy as np
import pandas as pd

from headcount.base.errors import UserError
from headcount.findings.cells import NONE
from headcount.findings.headmask.inequality import spread
from headcount.findings.published import michel
from headcount.findings.published.numbers import beside_ours
from headcount.findings.run_tables import BASE, HEAD, KEYS, gather
from headcount.findings.setting import of_one_training
from headcount.findings.significance import spearman

_KEPT = ["kept", "kept_low", "kept_high"]
POINTS = [*KEYS, "update", "test_set", "index", "percent", "heads_masked", "bleu", *_KEPT]
SHARES = (20, 40, 60)
COLUMNS = [*KEYS, "update", "test_set", "bleu"]
COLUMNS += [f"{name}_{share}" for share in SHARES for name in _KEPT]
COLUMNS += ["r_squared", "end_mass", "cv", "spearman_with_last", "source"]
FLOOR = 2.0
"""BLEU of a checkpoint below which shares of it mean nothing."""

_ENDS = 15  # percentage points from 0 and 100
CAPTION = (
    "The pruning profile at points of the training: percent of that checkpoint's BLEU that is kept "
    "when 20, 40 and 60 % of its heads, the least important ones, are pruned (read between steps "
    "in a straight line), with 95 % intervals by paired bootstrap; R² of a straight line through "
    "the profile from no head to all, near 1 where all heads matter alike; end mass, the share of "
    f"the points between whose value is within {_ENDS} points of 100 or 0 %; coefficient of "
    "variation of the importance by which they are pruned, and its rank correlation with that at "
    f"the last of these updates. {of_one_training('test sentences')} Below a BLEU of "
    f"{FLOOR:.0f} a checkpoint has no profile. Rows whose source is paper: {michel.source()}, "
    "Figure 5 (IWSLT14 De-En, epochs in place of updates; all heads pruned counted as 0). "
    f"{beside_ours(michel.metric())}"
)


def training_points(files: list[Path]) -> pd.DataFrame:
    """Rows of training_profile.csv: columns of `POINTS`.

    `percent` of heads pruned; `kept`: percent of that checkpoint's BLEU with all its heads, between
    `kept_low` and `kept_high` by bootstrap of the difference; empty where that BLEU is below
    `FLOOR`.
    """
    scores = ["bleu", "delta_low", "delta_high"]
    table = gather(files, ["update", "test_set", "index", "heads_masked", *scores])
    groups = table.groupby([*KEYS, "update"], sort=False)
    whole = groups["bleu"].transform("first")
    table["percent"] = 100 * table["index"] / groups["index"].transform("max")
    bounds = (whole + table[name] for name in ("delta_low", "delta_high"))
    for name, bleu in zip(_KEPT, (table["bleu"], *bounds), strict=True):
        kept = (100 * bleu.clip(lower=0) / whole.where(whole >= FLOOR)).astype(object)
        table[name] = kept.where(kept.notna(), "")
    return table[POINTS]


def training_table(points: pd.DataFrame, heads: list[Path], normalise: str) -> pd.DataFrame:
    """One checkpoint a row: columns of `COLUMNS`, then the paper's epochs.

    `heads`: training_profile_heads.csv of runs, whose importance is not normalised; `normalise`,
    as `ablation.normalise`: what was done to it before heads were ranked.

    Empty cells: what is not known. Raises UserError for a checkpoint without importance.
    """
    importance = gather(heads, ["update", *HEAD, "statistic", "value"])
    if normalise == "layer_l2":
        layers = importance.groupby([*KEYS, "update", "kind", "layer"])["value"]
        norms = layers.transform(np.linalg.norm)
        importance["value"] /= norms.where(norms > 0, 1)
    rows = []
    for key, of_run in points.groupby(KEYS, sort=False):
        model = importance[(importance[KEYS] == list(key)).all(axis=1)]
        by_update = {update: rows["value"].to_numpy() for update, rows in model.groupby("update")}
        last = max(of_run["update"])
        for update, found in of_run.groupby("update", sort=False):
            if update not in by_update:
                raise UserError(
                    f"training_profile_heads.csv of {key}: expected importance at update {update}, "
                    "found none; run scripts/training_profile.py again"
                )
            names = dict(zip(KEYS, key, strict=True)) | {"update": update, "source": "ours"}
            names |= {"test_set": found["test_set"].iloc[0], "bleu": found["bleu"].iloc[0]}
            names |= _profile(found["percent"].to_numpy(), found["kept"].to_numpy())
            names |= _bounds(found)
            agreed = spearman(by_update[update], by_update[last])
            names |= {"cv": spread(by_update[update]).cv, "spearman_with_last": agreed}
            rows.append(names)
    for epoch, found in michel.kept_by_epoch().groupby("epoch"):
        ordered = found.sort_values("percent")
        percent = np.array([0, *ordered["percent"], 100], dtype=float)
        kept = np.array([100, *ordered["value"], 0], dtype=object)
        names = {"pair": michel.SMALL_PAIR, "run": BASE, "seed": "", "update": f"epoch {epoch}"}
        rows.append(names | {"source": "paper"} | _profile(percent, kept))
    table = pd.DataFrame(rows, columns=COLUMNS).astype(object)
    return table.where(table.notna(), "")


def _profile(percent: np.ndarray, kept: np.ndarray) -> dict[str, float]:
    """Statistics of one profile [points]; nothing if the checkpoint has none."""
    if (kept == "").any():
        return {}
    values = kept.astype(float)
    at = {f"kept_{share}": float(np.interp(share, percent, values)) for share in SHARES}
    line = np.polyval(np.polyfit(percent, values, 1), percent)
    residual, total = ((values - line) ** 2).sum(), ((values - values.mean()) ** 2).sum()
    inner = values[1:-1]
    near = (inner >= 100 - _ENDS) | (inner <= _ENDS)
    ends = {"end_mass": float(near.mean())} if len(inner) else {}
    return at | {"r_squared": float(1 - residual / total) if total else 1.0} | ends


def _bounds(found: pd.DataFrame) -> dict[str, float]:
    """Intervals of what one profile keeps at `SHARES`; nothing if the checkpoint has none."""
    if (found["kept"] == "").any():
        return {}
    return {
        f"{name}_{share}": float(np.interp(share, found["percent"], found[name].astype(float)))
        for share in SHARES
        for name in _KEPT[1:]
    }


def training_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it."""
    rows = []
    for row in table.to_dict("records"):
        shown = {"pair": row["pair"], "run": row["run"], "seed": str(row["seed"]) or NONE}
        shown |= {"update": str(row["update"]), "test set": row["test_set"] or NONE}
        shown |= {"BLEU": _cell(row["bleu"], 2)}
        shown |= {f"kept at {share} %": _kept(row, share) for share in SHARES}
        shown |= {"R² of a line": _cell(row["r_squared"], 2), "end mass": _cell(row["end_mass"], 2)}
        shown |= {"cv of importance": _cell(row["cv"], 2)}
        shown |= {"rank correlation with the last": _cell(row["spearman_with_last"], 2)}
        rows.append(shown | {"source": row["source"]})
    return pd.DataFrame(rows)


def _kept(row: dict, share: int) -> str:
    low, high = (row[f"kept_{end}_{share}"] for end in ("low", "high"))
    bounds = "" if low == "" else f" ({low:.0f} to {high:.0f})"
    return f"{_cell(row[f'kept_{share}'], 0, ' %')}{bounds}"


def _cell(value: float | str, digits: int, unit: str = "") -> str:
    return NONE if value == "" else f"{value:.{digits}f}{unit}"
