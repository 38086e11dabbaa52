"""BLEU lost by heads left, for every way to choose heads and every model to start from."""

import pandas as pd

from headcount.findings.masking import DRAWS, SEEDS, TEST
from headcount.findings.run_tables import BASE
from headcount.findings.voita_comparison import START, TUNED, UNTUNED

METHOD = "method"
COLUMNS = ["pair", "test_set", "scope", "panel", "contender", "tuning", "lambda", "heads"]
COLUMNS += ["heads_left", "lost", "low", "high", "spread", "seeds"]
_GROUP = ["pair", "test_set", "scope", "panel", "contender", "tuning", "lambda"]


def method_points(records: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """A contender at one λ a row: columns of `COLUMNS`; from `pruning_table`, `comparison_table`.

    `panel`: method (from the baseline) or start (gates runs from several models). `lost`: BLEU −
    that of the λ = 0 control (tuned), or − that of the start model with all heads (untuned), mean
    over seeds and draws; negative is worse. `low` and `high` bound what `spread` names.
    """
    tuned = records.assign(tuning=TUNED)
    base = tuned[tuned["start"] == BASE]
    parts = [base.assign(panel=METHOD, contender=base["how"])]
    elsewhere = tuned.loc[tuned["start"] != BASE, ["pair", "scope"]].drop_duplicates()
    starts = tuned[tuned["how"] == "gates"].merge(elsewhere, on=["pair", "scope"])
    parts.append(starts.assign(panel=START, contender=starts["start"]))
    untuned = compared[compared["comparison"] == UNTUNED]
    untuned = untuned.assign(panel=METHOD, tuning=UNTUNED, heads=records["heads"].iloc[0])
    points = pd.concat([*parts, untuned], ignore_index=True)
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
