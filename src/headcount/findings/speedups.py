"""How sure speed-ups are: models take turns in every repeat, so that repeats are pairs."""

import numpy as np
import pandas as pd

from headcount.findings.significance import paired_t

COLUMNS = ["speedup_low", "speedup_high"]
INTERVAL = (
    "Bars: 95 % t interval of the mean logarithm of the speed-up over repeats, in each of which "
    "the models take turns."
)


def speedup_intervals(
    raw: pd.DataFrame, setup: list[str], model: str, whole: str | int
) -> pd.DataFrame:
    """95 % interval of each model's speed per step ÷ that of the model `whole`, over repeats.

    `raw` has a time a row: the columns `setup` and `model`, repeat, seconds and steps. Returns
    `setup`, `model` and `COLUMNS`; a model that was timed once has no row, nor has `whole`.
    """
    logs = raw.assign(log=np.log(raw["seconds"] / raw["steps"]))
    by_model = logs.pivot(index=[*setup, "repeat"], columns=model, values="log")
    gains = by_model.drop(columns=whole).rsub(by_model[whole], axis=0)
    rows = []
    for key, found in gains.groupby(level=setup, sort=False):
        for name, values in found.items():
            pairs = values.dropna().to_numpy()
            if len(pairs) > 1:
                tested = paired_t(pairs)
                rows.append((*key, name, *np.exp([tested.low, tested.high])))
    return pd.DataFrame(rows, columns=[*setup, model, *COLUMNS])


def warn_of_noise(table: pd.DataFrame) -> tuple[str, ...]:
    """A warning if timing cannot tell some speed-ups from none; `table` has `COLUMNS`, repeats."""
    known = table[table["speedup_low"] != ""]
    if known.empty:
        return ("Every model was timed once, so that nothing tells speed-ups from noise.",)
    unsure = ((known["speedup_low"] <= 1) & (known["speedup_high"] >= 1)).sum()
    if not unsure:
        return ()
    repeats = " or ".join(map(str, sorted(known["repeats"].unique())))
    return (
        f"{unsure} of {len(known)} speed-ups are smaller than the noise of their timing: the 95 % "
        f"interval over {repeats} repeats includes 1, which is no speed-up.",
    )


def reach(table: pd.DataFrame) -> list[pd.Series]:
    """Lengths of the error bars of `speedup`, below and above; 0 where no interval is known."""
    middle = table["speedup"].astype(float)
    low, high = (pd.to_numeric(table[name]).fillna(middle) for name in COLUMNS)
    return [(middle - low).clip(lower=0), (high - middle).clip(lower=0)]
