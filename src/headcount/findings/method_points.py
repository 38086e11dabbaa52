"""BLEU lost by heads left, for every way to choose heads and every model to start from."""

import pandas as pd

from headcount.findings.masking import DRAWS, SEEDS, TEST
from headcount.findings.run_tables import BASE
from headcount.findings.voita_comparison import START, TUNED, UNTUNED

COLUMNS = ["pair", "test_set", "scope", "panel", "contender", "lambda", "heads", "heads_left"]
COLUMNS += ["lost", "low", "high", "spread", "seeds"]
_GROUP = COLUMNS[:6]


def method_points(records: pd.DataFrame, untuned: pd.DataFrame) -> pd.DataFrame:
    """A contender at one λ a row: columns of `COLUMNS`.

    `records` comes from `pruning_table`; `untuned` has rows of `voita_comparison.untuned`. `panel`:
    tuned and untuned (from the baseline, by method), start (gates runs, by start). `heads` of the
    original model and `heads_left` are those of the scope. `lost`: BLEU − that of the λ = 0
    control, or, untuned, of the start model with all heads; mean over seeds and draws, negative is
    worse. `low` and `high` bound what `spread` names.
    """
    base = records[records["start"] == BASE]
    parts = [base.assign(panel=TUNED, contender=base["how"])]
    if len(untuned):
        same = records[["pair", "scope", "heads"]].drop_duplicates()
        parts.append(untuned.merge(same, on=["pair", "scope"]).assign(panel=UNTUNED))
    elsewhere = records.loc[records["start"] != BASE, ["pair", "scope"]].drop_duplicates()
    starts = records[records["how"] == "gates"].merge(elsewhere, on=["pair", "scope"])
    parts.append(starts.assign(panel=START, contender=starts["start"]))
    points = pd.concat(parts, ignore_index=True)
    # Heads of other kinds than the scope's all stay.
    alone = records[records["scope"] == "enc_self"]
    other = (alone["heads_left"] - alone["enc_self"]).max()
    for name in ("heads", "heads_left"):
        points[name] -= other * (points["scope"] == "enc_self") if len(alone) else 0
    rows = [_point(key, found) for key, found in points.groupby(_GROUP, sort=False)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _point(key: tuple, found: pd.DataFrame) -> dict:
    deltas = found["delta"].astype(float)
    by_seed = deltas.groupby(found["seed"]).mean()
    row = dict(zip(_GROUP, key, strict=True)) | {"heads": int(found["heads"].iloc[0])}
    row |= {"heads_left": found["heads_left"].mean(), "lost": by_seed.mean()}
    row["seeds"] = len(by_seed)
    if len(found) > len(by_seed):  # several draws
        return row | {"low": deltas.min(), "high": deltas.max(), "spread": DRAWS}
    if len(by_seed) > 1:
        sd = by_seed.std()
        return row | {"low": row["lost"] - sd, "high": row["lost"] + sd, "spread": SEEDS}
    low, high = (found[side].iloc[0] for side in ("delta_low", "delta_high"))
    return row | {"low": float(low), "high": float(high), "spread": TEST}
