"""Collapse and locked heads: a head is locked in while training masks it in nearly every update."""

import numpy as np
import pandas as pd

from headcount.analysis import collapse as training
from headcount.analysis.collapse import ABANDONED, ROUNDING, collapses
from headcount.analysis.frames import HEAD, RUN, FrameOf, Runs
from headcount.base.errors import UserError

SHORTEST = 50  # fewest updates of a lock-in
_HEADS = [*RUN, *HEAD]
_INTERVAL = [*RUN, "step"]


def collapse(
    importance: pd.DataFrame,
    masks: pd.DataFrame,
    curves: pd.DataFrame,
    masking: pd.DataFrame,
    trained_runs: Runs,
    collapsed: FrameOf[collapses],
) -> pd.DataFrame:
    """Return the evidence of collapse of every training, from its masks, losses and test scores."""
    heads = importance[importance["statistic"] == "importance"].set_index(_HEADS)
    often, late = training.with_updates(masks), training.late_frequencies(masks, trained_runs)
    heads["often"] = training.frequencies(often).reindex(heads.index, fill_value=0.0)
    heads["late"] = late.reindex(heads.index, fill_value=0.0)
    heads["abandoned"] = heads["late"] >= ABANDONED - ROUNDING
    heads["n"] = heads.index.get_level_values("run").map(lambda run: trained_runs[run].heads or 0)
    rank = heads.groupby(RUN)["often"].rank(ascending=False, method="first")
    most, model = heads[rank <= heads["n"]].groupby(RUN), heads.groupby(RUN, sort=False)
    table = pd.DataFrame({"heads": model.size(), "n": model["n"].first()})
    table["largest_frequency"] = model["often"].max()
    table["median_frequency"] = model["often"].median()
    table["late_largest_frequency"] = model["late"].max()
    table["abandoned_heads"] = model["abandoned"].sum()
    table["top_n_share"] = most["often"].sum() / model["often"].sum()
    table["most_masked_importance"] = most["value"].mean() / model["value"].mean()
    table = table.join(training.late_losses(curves).where(table["n"] > 0))
    groups = masking[masking["order"] == "group"].sort_values("index", kind="stable")
    top = groups.drop_duplicates(RUN).set_index(RUN)[["delta", "delta_low", "delta_high"]]
    table[["top_group_delta", "top_group_low", "top_group_high"]] = top
    yes = table.index.isin(pd.MultiIndex.from_frame(collapsed))
    return table.assign(collapsed=np.where(yes, "yes", "no")).reset_index()


def history(masks: pd.DataFrame, slopes: pd.DataFrame, trained_runs: Runs) -> pd.DataFrame:
    """Return masks, slopes and lock-in of every head and validation interval, with settings.

    `locked`: `ABANDONED` of the masking updates masked the head, in consecutive intervals of
    `SHORTEST` updates after the updates of `start_update` and `warmup_mask_updates`. `known`: there
    are slopes, too.
    """
    frame = training.with_masking(masks, trained_runs).merge(slopes, "left", [*_INTERVAL, *HEAD])
    if frame["slope_mean"].count() < slopes["slope_mean"].count():
        raise UserError("slopes.csv: expected only steps of masks.csv; run the experiment again")
    frame = frame.join(run_settings(trained_runs), on="run")
    frame["start"] = frame["step"] - frame["updates"]
    free = frame["start"] >= frame["start_update"] + frame["warmup_mask_updates"]
    often = frame["masked"] * frame["updates"] >= (ABANDONED - ROUNDING) * frame["masking"]
    often &= free & (frame["masking"] > 0)
    heads, interval = ([frame[name] for name in names] for names in (_HEADS, _INTERVAL))
    spell = (often != often.groupby(heads).shift()).groupby(heads).cumsum().rename("spell")
    frame["span"] = frame["updates"].groupby([*heads, spell]).transform("sum")
    frame["locked"] = often & (frame["span"] >= SHORTEST)
    frame["known"] = free & frame["slope_mean"].notna().groupby(interval).transform("all")
    return frame


def run_settings(runs: Runs) -> pd.DataFrame:
    """Return the settings of runs, one a row, with `n` for the number of masked heads."""
    settings = pd.DataFrame([run.model_dump() for run in runs.values()], list(runs))
    return settings.rename(columns={"heads": "n"}).fillna({"n": 0})


def locked_history(history: FrameOf[history]) -> pd.DataFrame:
    """Return the history of the first seed of every run that measured slopes."""
    measured = history.dropna(subset="slope_mean")[RUN].drop_duplicates(["pair", "run"])
    first = measured.merge(history, on=RUN)
    layer = first["kind"] + " layer " + first["layer"].astype(str)
    first["_layer"] = layer.where(first.groupby(_HEADS)["locked"].transform("any"))
    columns = ["masked", "slope_mean", "slope_sd", "importance", "locked", "_layer"]
    return first[[*_INTERVAL, *HEAD, *columns]].astype({"locked": int})


def locked_in(history: FrameOf[history]) -> pd.DataFrame:
    """Return the heads that were locked in: when, and slope and importance meanwhile."""
    groups = history.groupby(_HEADS, sort=False)
    history = history.assign(previous=groups["importance"].shift())
    locked = history[history["locked"]].groupby(_HEADS)
    first = locked.head(1).set_index(_HEADS)
    heads = pd.DataFrame({"locked_from": locked["start"].min(), "locked_to": locked["step"].max()})
    heads["locked_intervals"], heads["locked_updates"] = locked.size(), locked["updates"].sum()
    heads[["slope", "slope_sd"]] = _slopes(history[history["locked"]])
    heads["importance_before"], heads["importance_locked"] = first["previous"], first["importance"]
    last = groups.tail(1).set_index(_HEADS)["importance"]
    heads = heads.assign(importance_end=last).reindex(last.index).dropna(subset="locked_to")
    until = history["start_update"] + history["warmup_mask_updates"]
    hold = history[(history["start"] >= history["start_update"]) & (history["step"] <= until)]
    held = (hold.groupby(_HEADS)["masked"].min() >= 1 - ROUNDING).map({True: "yes", False: "no"})
    return heads.join(held.rename("in_warmup_mask")).reset_index()


def _slopes(locked: pd.DataFrame) -> pd.DataFrame:
    """Return mean slopes of heads and their deviations, weighted by the updates of intervals."""
    known = locked.dropna(subset="slope_mean")
    sums = known[["slope_mean", "slope_sd"]].astype(float).mul(known["updates"], axis=0)
    heads = [known[name] for name in _HEADS]
    return sums.groupby(heads).sum().div(known["updates"].groupby(heads).sum(), axis=0)


def locked_heads(heads: FrameOf[locked_in], curves: pd.DataFrame) -> pd.DataFrame:
    """Return every head that was locked in. A training without any has a row that names none."""
    return curves[RUN].drop_duplicates().merge(heads, "left", on=RUN)
