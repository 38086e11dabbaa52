"""Point 1, whether locked heads are foretold: by what was measured before, and by when masks begin.

Signs are those of table `headmask_foreseen`; an area of 0.5 is chance.
"""

from typing import Any

import numpy as np
import pandas as pd

from headcount.findings.headmask.foreseen import MOMENTS, SIGNS
from headcount.findings.report.study.intervals import SMALL, above, with_interval
from headcount.findings.report.study.kept import Kept
from headcount.findings.significance import paired_t
from headcount.findings.tables import NONE, p_value

LATER = "collapse_later"
_CHANCE = 0.5
_TABLE = "headmask_foreseen"


def foretelling(kept: Kept, experiment: str, runs: list[str]) -> dict[str, Any]:
    """What the page says of these runs, all of whose trainings lock heads in, taken together.

    `rows`: a sign each, with its area at each moment; `short`: what foretells. Nothing while the
    table is not kept.
    """
    if not kept.has(experiment, _TABLE):
        return {}
    table = kept.table(experiment, _TABLE)
    trained = table[table["run"].isin(runs)].dropna(subset=["seed", "moment"])
    told = trained.groupby("run")[["moment", "seed"]].apply(lambda of: len(of.drop_duplicates()))
    whole = told[told == len(MOMENTS) * trained["seed"].nunique()].index
    trained = trained[trained["run"].isin(whole)]
    if trained.empty:
        return {}
    areas = _over_runs(trained)
    rows = [
        {"sign": words, "cells": [_cell(areas, sign, moment) for moment in MOMENTS]}
        for sign, words in SIGNS.items()
    ]
    return {"moments": list(MOMENTS.values()), "rows": rows, "runs": len(whole)} | {
        "short": _short(areas)
    }


def _over_runs(trained: pd.DataFrame) -> pd.DataFrame:
    """Area by sign and moment: `value`, and its t interval from `low` to `high` over seeds.

    Runs of one seed share weights and batches, so that their mean is one number of the seed.
    """
    by_seed = trained.groupby(["foretold_by", "moment", "seed"])["roc_area"].mean().unstack()
    ends = [
        paired_t(seeds)[:2] if len(seeds) > 1 else (np.nan, np.nan) for seeds in by_seed.to_numpy()
    ]
    low, high = np.transpose(ends)
    return pd.DataFrame({"value": by_seed.mean(axis=1), "low": low, "high": high})


def _cell(areas: pd.DataFrame, sign: str, moment: str) -> str:
    key = (sign, moment)
    return with_interval(areas.loc[key], 2, "") if key in areas.index else NONE


def _short(areas: pd.DataFrame) -> str:
    """What the layer, and what harm, foretells."""
    words = []
    for sign, told in (
        ("first_decoder", "the decoder's first layer"),
        ("slope", "a slope above 0, harm,"),
    ):
        verdicts = {moment: _verdict(areas, sign, moment) for moment in ("start", "before_masked")}
        words.append(
            f"That {told} foretells locked heads: {verdicts['start']} after the first interval, "
            f"area {_cell(areas, sign, 'start')}; {verdicts['before_masked']} among the heads "
            f"masked most, {_cell(areas, sign, 'before_masked')}."
        )
    return " ".join(words)


def _verdict(areas: pd.DataFrame, sign: str, moment: str) -> str:
    row = areas.reindex([(sign, moment)]).iloc[0]
    return above(row["low"] - _CHANCE, row["high"] - _CHANCE)


def beginning_later(kept: Kept) -> dict[str, Any]:
    """What the page says of trainings whose masks begin late; nothing while none are kept."""
    if not kept.begun(LATER):
        return {}
    table = kept.table(LATER, "headmask_locked")
    over = table[table["seed"].isna() & table["run"].str.startswith("impt")]
    rows = [_later(row) for row in over.to_dict("records")]
    plain = table[table["run"].isin(over.loc[over["held"] == 0, "run"])].dropna(subset="seed")
    return {"rows": rows, "short": f"{_plain_short(plain)} {_held_short(over)}"}


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
    words = f"When masking begins late, {trained['seeds_locked'].sum():.0f} of {len(trained)} "
    words += "trainings lock heads in"
    both, ever = trained.dropna(subset="place_both")[["place_both", "locked_ever"]].sum()
    where = "of these heads are of the decoder's first self-attention"
    return f"{words}; {100 * both / ever:.0f} % {where}." if ever else f"{words}."


def _held_short(over: pd.DataFrame) -> str:
    """Which heads that are held stay masked."""
    held = over[over["held"] > 0].dropna(subset="held_p")
    stay = [f"`{run}`" for run in held.loc[held["held_p"] < SMALL, "run"]]
    return (
        f"Heads that are held then stay more often than chance gives in {len(stay)} of {len(held)} "
        f"runs{': ' if stay else ''}{', '.join(stay)}."
    )
