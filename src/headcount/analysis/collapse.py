"""Collapse of masked training: how often heads were masked, and which trainings collapsed."""

import numpy as np
import pandas as pd

from headcount.analysis.frames import HEAD, RUN, Runs
from headcount.base.random_streams import Stream
from headcount.base.settings.training_runs import RunSettings

ABANDONED = 0.9  # share of later masking updates from which on a head is masked nearly always
ROUNDING = 1e-9  # tolerance for shares that are read from a file and averaged


def with_updates(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of intervals, which end at `step`, with their lengths `updates`."""
    steps = table[[*RUN, "step"]].drop_duplicates()
    before = steps.groupby(RUN, sort=False)["step"].shift(fill_value=0)
    return table.merge(steps.assign(updates=steps["step"] - before), on=[*RUN, "step"])


def second_half(table: pd.DataFrame) -> pd.DataFrame:
    """Return the intervals in the second half of their training, at least the last one."""
    end = table.groupby(RUN)["step"].transform("max")
    return table[(table["step"] - table["updates"] >= end / 2) | (table["step"] == end)]


def frequencies(masks: pd.DataFrame) -> pd.Series:
    """Return the share of the `updates` of intervals that masked a head, by run and head."""
    weighted = masks.assign(masked=masks["masked"] * masks["updates"])
    sums = weighted.groupby([*RUN, *HEAD], sort=False)[["masked", "updates"]].sum()
    return (sums["masked"] / sums["updates"]).astype(float)


def with_masking(masks: pd.DataFrame, trained_runs: Runs) -> pd.DataFrame:
    """Return masks with `updates`, see `with_updates`, and `masking`: updates that mask a head."""
    frame = with_updates(masks)
    intervals = frame[[*RUN, "step", "updates"]].drop_duplicates()
    parts = [intervals.assign(masking=0)[:0]]
    for (_, run, seed), rows in intervals.groupby(RUN, sort=False):
        ends, lengths = rows[["step", "updates"]].to_numpy(dtype=int).T
        parts.append(rows.assign(masking=masking_updates(trained_runs[run], seed, ends, lengths)))
    return frame.merge(pd.concat(parts), how="left", on=[*RUN, "step", "updates"])


def late_frequencies(masks: pd.DataFrame, trained_runs: Runs) -> pd.Series:
    """Return the share of the masking updates in the second half of training that masked a head."""
    late = second_half(with_masking(masks, trained_runs))
    shares = (late["masked"] * late["updates"] / late["masking"]).where(late["masking"] > 0, 0.0)
    return frequencies(late.assign(masked=shares, updates=late["masking"])).fillna(0.0)


def masking_updates(run: RunSettings, seed: int, ends: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the number of updates that mask any head in each interval, from last updates."""
    if (run.probability == 1 and not run.start_update) or not len(ends):
        return sizes
    masks = [
        run.start_update < update <= run.rule_from
        or update > run.start_update
        and Stream.HEAD_MASK.generator(seed, update).random() < run.probability
        for update in range(1, int(max(ends)) + 1)
    ]
    until = np.concatenate([[0], np.cumsum(masks)])
    return until[ends] - until[ends - sizes]


def late_losses(curves: pd.DataFrame) -> pd.DataFrame:
    """Return mean losses in the second half of trainings: with all heads, and with masked heads."""
    curves = curves.reindex(columns=[*RUN, "step", "train_loss", "first_pass_loss"])
    late = second_half(with_updates(curves)).set_index(RUN)
    passes = late["first_pass_loss"].notna()
    late = late[passes | ~passes.groupby(RUN).transform("any")]
    sums = late[["first_pass_loss", "train_loss"]].astype(float).mul(late["updates"], axis=0)
    means = sums.groupby(RUN).sum(min_count=1).div(late.groupby(RUN)["updates"].sum(), axis=0)
    return means.rename(columns={"train_loss": "masked_loss"})


def collapses(masks: pd.DataFrame, curves: pd.DataFrame, trained_runs: Runs) -> pd.DataFrame:
    """Return pair, run and seed of the trainings whose own records show a collapse.

    Their most masked head was masked in `ABANDONED` of the later masking updates or more, and the
    loss with all heads was above the loss with masked heads.
    """
    most = late_frequencies(masks, trained_runs).groupby(RUN).max()
    losses = late_losses(curves).join(most.rename("most"), how="inner")
    harmed = losses["first_pass_loss"] > losses["masked_loss"]
    collapsed = losses[harmed & (losses["most"] >= ABANDONED - ROUNDING)]
    return collapsed.index.to_frame(index=False)
