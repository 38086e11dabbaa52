"""Speed-ups of models without heads. Models take turns in every repeat, so repeats are pairs."""

import numpy as np
import pandas as pd

from headcount.analysis.captions import note, ours
from headcount.analysis.stats import paired_t
from headcount.base.errors import UserError


def speedups(
    table: pd.DataFrame, raw: pd.DataFrame, setup: list[str], whole: str | int
) -> pd.DataFrame:
    """Return the table with `speedup`, its `speed` over the speed of the model `whole`.

    Low and high are 95 % t intervals of the mean logarithm over the repeats in `raw`, missing for
    one repeat. Raises UserError where `whole` was not timed in the same setup.
    """
    of_whole = table[table["model"] == whole].set_index(setup)["speed"].rename("whole")
    reference = table.join(of_whole, on=setup)["whole"]
    if reference.isna().any():
        where = dict(table.loc[reference.isna(), setup].iloc[0])
        raise UserError(f"times of {where}: expected {whole} among the models, found none")
    logs = raw.assign(log=np.log(raw["seconds"] / raw["steps"]))
    by_model = logs.pivot(index=[*setup, "repeat"], columns="model", values="log")
    gains = by_model.drop(columns=whole).rsub(by_model[whole], axis=0).stack()
    rows = [
        (*key, *np.exp(paired_t(values)[:2]))
        for key, values in gains.groupby(level=[*setup, "model"], sort=False)
    ]
    ends = pd.DataFrame(rows, columns=[*setup, "model", "speedup_low", "speedup_high"])
    return table.assign(speedup=table["speed"] / reference).merge(ends, "left", [*setup, "model"])


@note
def speedup_noise(frame: pd.DataFrame) -> str:
    """Return a warning if the intervals of some speed-ups include 1."""
    known = ours(frame).dropna(subset="speedup_low")
    if known.empty:
        return "Every model was timed once, so the noise of the speed-ups is not known."
    unsure = ((known["speedup_low"] <= 1) & (known["speedup_high"] >= 1)).sum()
    repeats = " or ".join(f"{count:.0f}" for count in sorted(known["repeats"].unique()))
    text = f"speed-ups are not significant: the 95 % interval over {repeats} repeats includes 1."
    return f"{unsure} of {len(known)} {text}" if unsure else ""
