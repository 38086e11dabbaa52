"""Point 1, whether locked heads are foretold: by what was measured before, and by when masks begin.

Signs are those of table `headmask_foreseen`; an area of 0.5 is chance.
"""

from typing import Any

import numpy as np
import pandas as pd

from headcount.findings.claims.verdicts import UNDECIDED
from headcount.findings.headmask.foreseen import MOMENTS, SIGNS, area_interval
from headcount.findings.headmask.locked_evidence import can_test
from headcount.findings.report.study.collapsed import marked
from headcount.findings.report.study.intervals import (
    SMALL,
    above,
    beyond_chance,
    listed,
    with_interval,
)
from headcount.findings.report.study.kept import Kept
from headcount.findings.results import KEYS
from headcount.findings.significance import holm, paired_t
from headcount.findings.tables import NONE, p_value

LATER = "collapse_later"
_CHANCE = 0.5
_TABLE = "headmask_foreseen"
_EXPLORATORY = "exploratory"
_ASKED = {
    "first_decoder_self": "the decoder's first self-attention",
    "first_decoder": "the decoder's first layer",
    "slope": "a larger slope (harm)",
}
_TOLD = ("start", "before_masked")  # the moments that say more than what the rule masks by


def foretelling(kept: Kept, experiment: str, runs: list[str]) -> dict[str, Any]:
    """What the page says of those of these runs that have, with every seed, heads to be foretold at
    every moment, taken together.

    `rows`: a sign each, with its area at each moment; `short` and `answer`: what foretells; `runs`:
    how many; `left_out`: the others in which anything could be foretold.
    Nothing while the table is not kept, or where no run is such.
    """
    if not kept.has(experiment, _TABLE):
        return {}
    table = kept.table(experiment, _TABLE)
    trained = table[table["run"].isin(runs)].dropna(subset="seed")
    seeds = trained["seed"].nunique()  # before those without a lock-in go
    trained = trained.dropna(subset="moment")
    told = trained.drop_duplicates(["run", "moment", "seed"])["run"].value_counts(sort=False)
    whole = told.index[told == len(MOMENTS) * seeds]
    others = [run for run in told.index if run not in whole]
    trained = trained[trained["run"].isin(whole)]
    if trained.empty:
        return {}
    areas = _over_runs(trained)
    rows = [
        {"sign": _words(areas, sign), "cells": [_cell(areas, sign, moment) for moment in MOMENTS]}
        for sign in SIGNS
    ]
    return {
        "moments": list(MOMENTS.values()),
        "rows": rows,
        "runs": len(whole),
        "left_out": f" (not {listed(others)})" if others else "",
        "short": _short(areas),
        "answer": _answer(areas),
    }


def _over_runs(trained: pd.DataFrame) -> pd.DataFrame:
    """Area by sign and moment, over seeds: `value`, its interval from `low` to `high`, p, runs.

    Runs of one seed share weights and batches, so that their mean is one number of the seed. A sign
    that was found on one of the trainings is `explored`, and has no interval.
    """
    of_sign = trained.groupby(["foretold_by", "moment"])
    by_seed = trained.groupby(["foretold_by", "moment", "seed"])["roc_area"].mean().unstack()
    tests = [
        can_test(key, sign)
        for sign, *key in trained[["foretold_by", *KEYS]].itertuples(index=False, name=None)
    ]
    explored = ~trained.assign(tests=tests).groupby(["foretold_by", "moment"])["tests"].all()
    ends = [
        (np.nan, np.nan) if explored[key] else area_interval(seeds.to_numpy())
        for key, seeds in by_seed.iterrows()
    ]
    low, high = np.transpose(ends)
    apart = [
        np.nan if np.isnan(end) else paired_t(seeds.to_numpy() - _CHANCE).p
        for end, (_, seeds) in zip(low, by_seed.iterrows(), strict=True)
    ]
    found = {"value": by_seed.mean(axis=1), "low": low, "high": high, "p": apart}
    found["explored"] = explored
    return pd.DataFrame(found).assign(runs=of_sign["run"].nunique())


def _words(areas: pd.DataFrame, sign: str) -> str:
    """A sign in words, and whether it is exploratory or known of fewer runs than others."""
    rows = areas[areas.index.get_level_values("foretold_by") == sign]
    told = [_EXPLORATORY] if _explored(areas, sign) else []
    if len(rows) and (runs := rows["runs"].min()) < areas["runs"].max():
        told.append(f"{runs} runs")
    return f"{SIGNS[sign]} ({', '.join(told)})" if told else SIGNS[sign]


def _cell(areas: pd.DataFrame, sign: str, moment: str) -> str:
    key = (sign, moment)
    return with_interval(areas.loc[key], 2, "") if key in areas.index else NONE


def _short(areas: pd.DataFrame) -> str:
    """What foretells locked heads after the first interval, in a sentence."""
    start, verdicts = _TOLD[0], _verdicts(areas)
    told = [
        f"by {words}: {_EXPLORATORY if _explored(areas, sign) else verdicts[sign, start]}, area "
        f"{_cell(areas, sign, start)}"
        for sign, words in _ASKED.items()
    ]
    return f"That locked heads are foretold after the first interval {'; '.join(told)}."


def _explored(areas: pd.DataFrame, sign: str) -> bool:
    return bool(areas[areas.index.get_level_values("foretold_by") == sign]["explored"].any())


def _answer(areas: pd.DataFrame) -> list[str]:
    """What each layer, and what harm, foretells; no verdict where that is exploratory."""
    words, verdicts = [], _verdicts(areas)
    for sign, told in _ASKED.items():
        start, late = (_cell(areas, sign, moment) for moment in _TOLD)
        decided = [verdicts[sign, moment] for moment in _TOLD]
        if _explored(areas, sign):
            words.append(
                f"That {told} foretells locked heads was found on trainings among these, whose "
                f"mean cannot test it: {_EXPLORATORY}, area {start} after the first interval, "
                f"{late} among the heads masked most."
            )
        else:
            words.append(
                f"That {told} foretells locked heads: {decided[0]} after the first interval, area "
                f"{start}; {decided[1]} among the heads masked most, {late}."
            )
    return words


def _verdicts(areas: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Whether each sign foretells at each moment that is told of, with p corrected for them all.

    The p is told where the interval alone would decide otherwise.
    """
    asked = areas.reindex([(sign, moment) for sign in _ASKED for moment in _TOLD])
    tested = asked.dropna(subset="p")
    corrected = dict(zip(tested.index, holm(tested["p"].to_numpy(dtype=float)), strict=True))
    verdicts = {}
    for key, low, high in asked[["low", "high"]].itertuples(name=None):
        alone, p = above(low - _CHANCE, high - _CHANCE), corrected.get(key, 1.0)
        verdicts[key] = alone if p < SMALL else UNDECIDED
        if verdicts[key] != alone:
            verdicts[key] += f" (corrected p {p_value(p)})"
    return verdicts


def beginning_later(kept: Kept) -> dict[str, Any]:
    """What the page says of trainings whose masks begin late; nothing while none are kept."""
    if not kept.begun(LATER):
        return {}
    table = kept.table(LATER, "headmask_locked")
    over = table[table["seed"].isna() & table["run"].str.startswith("impt")]
    rows = marked(kept, LATER, [_later(row) for row in over.to_dict("records")])
    plain = table[table["run"].isin(over.loc[over["held"] == 0, "run"])].dropna(subset="seed")
    return {"rows": rows, "answer": [_plain_short(plain), _held_short(over)]}


def _later(row: dict[str, Any]) -> dict[str, str]:
    """A run: whether it locks heads in, and how many of those that were held."""
    locks, tells = row["locked_ever"] > 0, not pd.isna(row["held_p"])
    held = f"{row['held_both']:.1f} of {row['n']:.0f}, by chance {row['held_expected']:.1f}"
    return {
        "run": row["run"],
        "seeds": f"{row['seeds_locked']:.0f} of {row['seeds']:.0f}",
        "heads": f"{row['locked_ever']:.1f}",
        "start": f"{row['locked_from']:.0f}" if locks else NONE,
        "slope": f"{row['locked_slope']:+z.2f} / {row['others_slope']:+z.2f}" if locks else NONE,
        "place": _place(row),
        "held": f"{held}; p {p_value(row['held_p'])}" if tells else NONE,
    }


def _place(row: dict[str, Any]) -> str:
    if pd.isna(row["place_p"]):
        return NONE
    chance = f"by chance {row['place_expected']:.1f}; p {p_value(row['place_p'])}"
    return f"{row['place_both']:.1f}, {chance}"


def _plain_short(trained: pd.DataFrame) -> str:
    """How many of the trainings that hold no heads lock some in, and where these are."""
    if trained.empty:
        return ""
    words = f"When masking begins late, {trained['seeds_locked'].sum():.0f} of {len(trained)} "
    words += "trainings lock heads in"
    both, ever = trained.dropna(subset="place_both")[["place_both", "locked_ever"]].sum()
    where = "of these heads are of the decoder's first self-attention"
    return f"{words}; {100 * both / ever:.0f} % {where}." if ever else f"{words}."


def _held_short(over: pd.DataFrame) -> str:
    """Which heads that are held stay masked, and how many runs cannot say."""
    known = over[over["held"] > 0].dropna(subset="held_both")
    held = known.dropna(subset="held_p")
    stay = [f"`{run}`" for run in held.loc[beyond_chance(held["held_p"]), "run"]]
    words = f"Heads that are held then stay more often than chance gives in {len(stay)} of "
    words += f"{len(held)} runs{': ' if stay else ''}{', '.join(stay)}."
    mute = len(known) - len(held)
    silent = "Runs that say nothing, as no head that might have been held is locked in"
    told = [words if len(held) else "", f"{silent}: {mute}." if mute else ""]
    return " ".join(filter(None, told))
