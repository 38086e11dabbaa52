"""How often training masked each head, from the masks.csv of runs: in all, and as it went on."""

from pathlib import Path

import pandas as pd

from headcount.findings.results import HEAD, KEYS, gather


def read_masks(files: list[Path]) -> pd.DataFrame:
    """Shares of updates by interval: pair, run, seed, step, kind, layer, head, masked, updates.

    `masked` is the share, 0 to 1, of the interval's updates that masked the head; `updates` is the
    length of the interval, which ends at update `step`. Runs that mask no head have no rows.
    """
    return with_lengths(gather(files, ["step", *HEAD, "masked"]))


def with_lengths(table: pd.DataFrame) -> pd.DataFrame:
    """A table of intervals, each named by its last `step`, with their lengths as `updates`."""
    steps = table[[*KEYS, "step"]].drop_duplicates()
    before = steps.groupby(KEYS, sort=False)["step"].shift(fill_value=0)
    return table.merge(steps.assign(updates=steps["step"] - before), on=[*KEYS, "step"])


def second_half(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of intervals that lie wholly in the second half of their run; at least the last one.

    The table has `updates`, as `with_lengths` returns it.
    """
    end = table.groupby(KEYS)["step"].transform("max")
    return table[(table["step"] - table["updates"] >= end / 2) | (table["step"] == end)]


def frequencies(masks: pd.DataFrame) -> pd.Series:
    """Share of all updates at hand that masked a head, by pair, run, seed, kind, layer, head."""
    weighted = masks.assign(count=masks["masked"] * masks["updates"])
    sums = weighted.groupby([*KEYS, *HEAD], sort=False)[["count", "updates"]].sum()
    return sums["count"] / sums["updates"]
