"""Collapse and locked heads: a head is locked in while training masks it in nearly every update."""

from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from headcount.analysis import collapse as training
from headcount.analysis.collapse import ABANDONED, ROUNDING, Collapsed
from headcount.analysis.frames import HEAD, RUN
from headcount.analysis.stats import sum_p
from headcount.base.errors import UserError
from headcount.base.settings.training_runs import RunSettings

Runs = dict[str, RunSettings]

SHORTEST = 50
"""Fewest updates of a lock-in."""

EXPLORED = {
    "first_decoder_self": {"synthetic.en-art": 3, "multi30k.en-de": 1},
    "first_decoder": {"synthetic.en-art": 6, "multi30k.en-de": 1},
}
"""By predictor and pair, the last seed whose training suggested it and so cannot test it."""

_HEADS = [*RUN, *HEAD]
_INTERVAL = [*RUN, "step"]
_SLOPES = ["slope_ratio", "slope", "slope_sd"]
_PREDICTORS = ["slope", "size", "importance", "agreement", "deviation", "masked"]
_PREDICTORS += ["first_decoder_self", "first_decoder"]


def collapse(
    importance: pd.DataFrame,
    masks: pd.DataFrame,
    curves: pd.DataFrame,
    masking: pd.DataFrame,
    trained_runs: Runs,
    collapsed: Collapsed,
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
    `SHORTEST` updates after the updates of `after` and `held`. `known`: there are slopes, too.
    """
    frame = training.with_masking(masks, trained_runs).merge(slopes, "left", [*_INTERVAL, *HEAD])
    if frame["slope_mean"].count() < slopes["slope_mean"].count():
        raise UserError("slopes.csv: expected only steps of masks.csv; run the experiment again")
    frame = frame.join(run_settings(trained_runs), on="run")
    frame["start"] = frame["step"] - frame["updates"]
    free = frame["start"] >= frame["after"] + frame["held"]
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


History = Annotated[pd.DataFrame, history]


def locked_history(history: History) -> pd.DataFrame:
    """Return the history of the first seed of every run that measured slopes."""
    measured = history.dropna(subset="slope_mean")[RUN].drop_duplicates(["pair", "run"])
    first = measured.merge(history, on=RUN)
    layer = first["kind"] + " layer " + first["layer"].astype(str)
    first["_layer"] = layer.where(first.groupby(_HEADS)["locked"].transform("any"))
    columns = ["masked", "slope_mean", "slope_sd", "importance", "locked", "_layer"]
    return first[[*_INTERVAL, *HEAD, *columns]].astype({"locked": int})


def by_head(history: History) -> pd.DataFrame:
    """Return when every head of masked trainings was locked in, and its slope meanwhile.

    `was_held` and `place` predict a lock-in, among heads that are `holdable` or `candidate`: the
    run held the head in its first updates, or it is in the first decoder self-attention layer.
    """
    groups = history.groupby(_HEADS, sort=False)
    history = history.assign(previous=groups["importance"].shift())
    locked = history[history["locked"]].groupby(_HEADS)
    first, last = (part.set_index(_HEADS) for part in (locked.head(1), groups.tail(1)))
    heads = last.rename(columns={"locked": "locked_at_end", "importance": "importance_end"})
    heads["locked_ever"] = groups["locked"].any()
    heads["locked_from"], heads["locked_to"] = locked["start"].min(), locked["step"].max()
    heads["locked_intervals"], heads["locked_updates"] = locked.size(), locked["updates"].sum()
    heads["locked_longest"] = locked["span"].max()
    heads["importance_before"], heads["importance_locked"] = first["previous"], first["importance"]
    until = history["after"] + history["held"]
    hold = history[(history["start"] >= history["after"]) & (history["step"] <= until)]
    heads["was_held"] = (hold.groupby(_HEADS)["masked"].min() >= 1 - ROUNDING).astype(float)
    heads[_SLOPES] = _slopes(history)
    heads = heads.reset_index()
    kind, first_layer, anywhere = heads["kind"], heads["layer"] == 0, heads["held_in"].isna()
    may = kind != heads["spare"]
    heads["holdable"] = may & (anywhere | (kind == heads["held_in"]) & first_layer)
    rule = (heads["method"] == "importance") & anywhere
    rule &= heads.groupby(RUN)["locked_ever"].transform("any")
    place = (may & (kind == "dec_self") & first_layer).where(rule)
    return heads.assign(candidate=may, place=place)


def _slopes(history: pd.DataFrame) -> pd.DataFrame:
    """Return mean slopes: of heads ever locked in while they were, of others while any head was."""
    heads, interval = ([history[name] for name in names] for names in (_HEADS, _INTERVAL))
    locked = history["locked"]
    ever, any_head = (locked.groupby(by).transform("any") for by in (heads, interval))
    weight = history["updates"].where(locked.where(ever, any_head))
    weight = weight.where(history["slope_mean"].notna()).astype(float)
    values = history[["slope_mean", "slope_sd", "importance"]].astype(float)
    values["size"] = values["slope_mean"].abs()
    values["importance"] = values["importance"].mask(history["signed"].astype(bool))
    means = values.mul(weight, axis=0).groupby(heads).sum(min_count=1)
    means = means.div(weight.groupby(heads).sum(min_count=1), axis=0)
    means["slope_ratio"] = means["size"] / means["importance"]
    return means.rename(columns={"slope_mean": "slope"})[_SLOPES]


Heads = Annotated[pd.DataFrame, by_head]


def locked_heads(heads: Heads, curves: pd.DataFrame) -> pd.DataFrame:
    """Return every head that was locked in; a training without any has a row that names none."""
    columns = [*_HEADS, "locked_from", "locked_to", "locked_intervals", "locked_updates", "slope"]
    columns += ["slope_sd", "importance_before", "importance_locked", "importance_end", "was_held"]
    heads = heads.loc[heads["locked_ever"], columns].replace({"was_held": {1: "yes", 0: "no"}})
    return curves[RUN].drop_duplicates().merge(heads, "left", on=RUN)


def locked(
    heads: Heads, curves: pd.DataFrame, settings: dict[str, Any], trained_runs: Runs
) -> pd.DataFrame:
    """Return when trainings locked heads in, with which slopes, and whether that was predicted."""
    table = curves[RUN].drop_duplicates().assign(heads=settings["model"].grid.size)
    table = table.join(run_settings(trained_runs)[["n", "held"]], on="run")
    counts = {"locked_ever": "sum", "locked_at_end": "sum"}
    times = heads.groupby(RUN).agg(counts | {"locked_from": "min", "locked_longest": "max"})
    model, ever = [heads[name] for name in RUN], heads["locked_ever"]
    for name in _SLOPES:
        times[f"locked_{name}"] = heads[name].where(ever).groupby(model).mean()
        times[f"others_{name}"] = heads[name].mask(ever).groupby(model).median()
    table = table.join(times, on=RUN).fillna(dict.fromkeys(counts, 0))
    for name, told, things in (("held", "was_held", "holdable"), ("place", "place", "candidate")):
        table = table.join(_predicted(heads, told, things).add_prefix(f"{name}_"), on=RUN)
    return table


def _predicted(heads: pd.DataFrame, name: str, things: str) -> pd.DataFrame:
    """Return how many predicted heads were locked in, and p of all seeds that can test it together.

    By chance these numbers are hypergeometric, or for `place` those of a layer drawn at random.
    """
    rows = []
    for key, model in heads.dropna(subset=name).groupby(RUN):
        told, may, ever = model[name].astype(bool), model[things], model["locked_ever"]
        total, count, locked = may.sum(), told.sum(), (ever & may).sum()
        row = [(ever & told).sum(), count * locked / total, None]
        if locked and not (name == "place" and _is_explored("first_decoder_self", *key)):
            layers = ever[may].groupby([model["kind"], model["layer"]]).sum()
            chances = hypergeom(total, count, locked).pmf(np.arange(count + 1))
            row[2] = np.bincount(layers) / len(layers) if name == "place" else chances
        rows += [(*key, *row)] * bool(count)
    scores = pd.DataFrame(rows, columns=[*RUN, "both", "expected", "chances"])
    groups = scores.dropna(subset="chances").groupby(["pair", "run"])
    p = [sum_p(seeds["chances"], seeds["both"].sum()) for _, seeds in groups]
    scores = scores.join(pd.Series(p, groups.size().index, float, "p"), on=["pair", "run"])
    scores["p"] = scores["p"].where(scores.pop("chances").notna())
    return scores.set_index(RUN)


def _is_explored(predictor: str, pair: str, run: str, seed: int) -> bool:
    return seed <= EXPLORED.get(predictor, {}).get(pair, 0)


def foreseen(history: History, curves: pd.DataFrame) -> pd.DataFrame:
    """Return the area under the ROC curve with which measurements rank heads that will lock in."""
    ids, keys = [*_INTERVAL, "moment", "will_lock"], [*RUN, "moment", "predictor"]
    long = _contests(history).melt(ids, _PREDICTORS, "predictor").dropna(subset="value")
    contest = [*keys, "step"]
    long["rank"] = long.groupby(contest)["value"].rank(pct=True)
    locked = long[long["will_lock"]].groupby(contest)["rank"]
    free = long[~long["will_lock"]].groupby(contest)["rank"]
    count, area = locked.size(), 0.5 + locked.mean() - free.mean()
    sums = pd.DataFrame({"lock_ins": count, "roc_area": area * count}).dropna()
    areas = sums.groupby(keys).sum()
    areas = areas.assign(roc_area=areas["roc_area"] / areas["lock_ins"]).reset_index()
    explored = [_is_explored(*row) for row in areas[["predictor", *RUN]].itertuples(index=False)]
    areas["exploratory"] = np.where(explored, "yes", "no")
    return curves[RUN].drop_duplicates().merge(areas, "left", RUN)


def _contests(history: pd.DataFrame) -> pd.DataFrame:
    """Return heads with predictors: in the first interval (`start`) if they `will_lock` later.

    `before`: in any interval, if in the next. `before_masked`: the 2 N heads masked most of these.
    """
    frame = history.rename(columns={"slope_mean": "slope", "slope_sd": "deviation"})
    frame["size"], first = frame["slope"].abs(), frame["layer"] == 0
    agreement = (frame["size"] / frame["importance"]).where(frame["importance"] > 0, 0.0)
    frame["agreement"] = agreement.mask(frame["signed"].astype(bool))
    frame["first_decoder_self"] = ((frame["kind"] == "dec_self") & first).astype(float)
    frame["first_decoder"] = ((frame["kind"] != "enc_self") & first).astype(float)
    heads = [frame[name] for name in _HEADS]
    frame["next"] = frame["locked"].groupby(heads).shift(-1)
    last = frame["step"].where(frame["locked"]).groupby(heads).transform("max")
    frame["later"] = frame["step"] < last
    frame = frame[frame["known"] & (frame["kind"] != frame["spare"])]
    first = frame["step"] == frame.groupby(RUN)["step"].transform("min")
    free = ~frame["locked"]
    start = frame[first & free].assign(moment="start", will_lock=frame["later"])
    before = frame[free].dropna(subset="next").assign(moment="before")
    before["will_lock"] = before["next"].astype(bool)
    rank = before.groupby(_INTERVAL)["masked"].rank(method="first", ascending=False)
    most = before[(rank <= 2 * before["n"]) & (before["masked"] > 0)]
    return pd.concat([start, before, most.assign(moment="before_masked")])
