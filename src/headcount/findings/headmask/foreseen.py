"""Whether what training measured of its heads tells beforehand which of them are locked in."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from headcount.findings import exhibits
from headcount.findings.headmask.locked_evidence import PLACE, can_test
from headcount.findings.headmask.locked_in import History
from headcount.findings.headmask.locked_tables import LOCKED_IN, SLOPE, recorded
from headcount.findings.masked_training import ROUNDING
from headcount.findings.results import KEYS, Results
from headcount.findings.setting import OVER_SEEDS, describe_setting
from headcount.findings.significance import paired_t
from headcount.findings.tables import NONE, Table, fill_empty, mean_count, run_cells

MOMENTS = {
    "start": "the first interval, locked in at any time after",
    "before": "the interval before",
    "before_masked": "the interval before, of those masked most",
}
"""When what foretells them is measured, with words for people."""

SIGNS = {
    "slope": "slope",
    "size": "its size",
    "importance": "importance",
    "agreement": "size ÷ importance",
    "deviation": "deviation",
    "masked": "share of updates that masked it, in that interval",
    "first_decoder_self": "in the decoder's first self-attention",
    "first_decoder": "in the decoder's first layer",
}
"""By what heads are foretold, the larger the likelier, with words for people."""

COLUMNS = [
    *KEYS,
    "moment",
    "foretold_by",
    "lock_ins",
    "roc_area",
    "roc_area_low",
    "roc_area_high",
    "exploratory",
    "seeds",
]
_CAPTION = (
    "Which heads will be locked in, as told by what training measured before: how often a head "
    "that is locked in lies above one that is not. 0.5 is chance, 1 foretells all; below 0.5 it is "
    "the lower ones that are locked in."
)
_NOTES = (
    "Area: under the ROC curve, the chance that a head that is locked in has a larger value than "
    "one of the others; equal values count half. The first interval: the first one between "
    "validations that the rule alone masks; heads that are locked in at any time after it, against "
    "those that never are. Heads that are locked in already in it are neither foretold nor among "
    "the others. The interval before: the last one before a head is locked in; against the heads "
    "that are locked in neither then nor in the next; mean over all such beginnings. Masked most: "
    "only among the 2 N heads, not locked in, that were masked most in that interval, or as many "
    "as were masked at all; of heads masked equally often at the 2 N-th place the first in the "
    "model's order count, the encoder's before the decoder's.",
    "Importance before is nearly what the rule picks heads by, and masks are what it picked, so "
    "that either tells of the next interval without being a cause. Among the heads masked most, "
    "both say less, and what the slope says is its own. Size ÷ importance: near 1 all sentences, "
    "or other units of the ranking, agree; not for importance with a sign. A layer is a sign with "
    "two values: its area is 1 only if all its heads, and no others, are locked in. Exploratory: "
    "that this layer foretells was found on one of these trainings, which cannot test it: the "
    "self-attention on seeds 1 to 3 of the generated corpus, the whole layer on seeds 1 to 6, both "
    "on seed 1 of Multi30k.",
    "Lock-ins: heads that were to be foretold, each time anew that one is locked in; over seeds "
    "their sum. Seeds: those with something to foretell, of all; an interval stands only where all "
    "have the area and do not agree in it, within 0 to 1, and never where it is exploratory.",
    LOCKED_IN,
    SLOPE,
)


@exhibits.table("headmask_foreseen", needs=("masks", "slopes"))
def foreseen(results: Results) -> Table:
    """Heads that masked training will lock in, foretold."""
    tidy = foreseen_rows(recorded(results))
    notes = (*_NOTES, OVER_SEEDS, *describe_setting(results, tidy[tidy["seed"] != ""]))
    return Table(tidy, _summary(tidy), _CAPTION, notes)


def foreseen_rows(histories: Sequence[History]) -> pd.DataFrame:
    """A training, moment and sign a row, then those over the seeds of each run: `COLUMNS`.

    Over seeds: mean area, its 95 % t interval if `area_interval` has one of all seeds that can test
    the sign, all beginnings. A training of which nothing can be foretold has one row without a
    moment.
    """
    of_runs: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for history in histories:
        told = [
            row | {"exploratory": "no" if can_test(history.key, row["foretold_by"]) else "yes"}
            for row in foresee(history)
        ]
        found = pd.DataFrame(told or [{}], columns=COLUMNS).astype(object)
        found = found.assign(**dict(zip(KEYS, history.key, strict=True)), seeds=1)
        of_runs.setdefault(history.key[:2], []).append(found)
    tables = []
    for of_run in of_runs.values():
        tables += of_run
        if len(of_run) > 1:
            tables.append(_over_seeds(pd.concat(of_run)))
    return fill_empty(pd.concat(tables, ignore_index=True))


def _over_seeds(of_run: pd.DataFrame) -> pd.DataFrame:
    """Rows over the seeds of one run, for what several seeds tell."""
    rows = []
    for (moment, sign), group in of_run.dropna(subset="moment").groupby(
        ["moment", "foretold_by"], sort=False
    ):
        areas = group["roc_area"].to_numpy(dtype=float)
        if len(areas) > 1:
            explored = "yes" if (group["exploratory"] == "yes").any() else "no"
            row = {"moment": moment, "foretold_by": sign, "lock_ins": group["lock_ins"].sum()}
            row |= {"roc_area": areas.mean(), "exploratory": explored, "seeds": len(areas)}
            if len(areas) == of_run["seed"].nunique() and explored == "no":
                row["roc_area_low"], row["roc_area_high"] = area_interval(areas)
            rows.append(row)
    table = pd.DataFrame(rows, columns=COLUMNS).astype(object)
    return table.assign(pair=of_run["pair"].iloc[0], run=of_run["run"].iloc[0], seed="")


def area_interval(areas: np.ndarray) -> tuple[float, float]:
    """95 % t interval of a mean area, an area a seed, within 0 to 1.

    NaN for fewer than two, and for equal ones: they do not tell how far others would lie apart.
    """
    if len(areas) < 2 or np.ptp(areas) < ROUNDING:
        return np.nan, np.nan
    low, high, _ = paired_t(areas)
    return max(low, 0.0), min(high, 1.0)


class Contest(NamedTuple):
    """Heads of one interval: those that will be locked in, and the others, both [head]."""

    interval: int
    locked: np.ndarray
    others: np.ndarray


def foresee(history: History) -> list[dict[str, Any]]:
    """How well each of `SIGNS` foretells at each of `MOMENTS`; nothing where nothing is to be told.

    That is without a lock-in, and in a run without first passes. Each has `moment`, `foretold_by`,
    `lock_ins`, how many heads were to be foretold, and `roc_area`, 0 to 1, their mean.
    """
    rows = []
    signs = signs_of(history)
    for moment in MOMENTS:
        found = [one for one in contests(history, moment) if one.locked.any() and one.others.any()]
        count = sum(int(one.locked.sum()) for one in found)
        for sign, values in signs.items() if found else ():
            areas = [area(values[one.interval], one.locked, one.others) for one in found]
            mean = np.average(areas, weights=[one.locked.sum() for one in found])
            rows.append(
                {"moment": moment, "foretold_by": sign, "lock_ins": count, "roc_area": mean}
            )
    return rows


def signs_of(history: History) -> dict[str, np.ndarray]:
    """Values of `SIGNS` [interval, head]; without those that are alike for all heads."""
    size, importance = np.abs(history.slope_mean), history.importance
    found = {"slope": history.slope_mean, "size": size, "importance": importance}
    if not history.run.signed:
        zeros = np.zeros_like(size)
        found["agreement"] = np.divide(size, importance, out=zeros, where=importance > 0)
    found |= {"deviation": history.slope_sd, "masked": history.masked}
    layers = {
        "first_decoder_self": [(kind, layer) == PLACE for kind, layer, _ in history.heads],
        "first_decoder": [kind != "enc_self" and layer == 0 for kind, layer, _ in history.heads],
    }
    for name, within in layers.items():
        if np.ptp(np.array(within, dtype=int)[history.candidates]):
            found[name] = np.broadcast_to(np.array(within, dtype=float), size.shape)
    return found


def contests(history: History, moment: str) -> Iterator[Contest]:
    """The intervals from which heads are foretold at one of `MOMENTS`, and which heads."""
    known = np.flatnonzero(history.free & ~np.isnan(history.slope_mean).any(axis=1))
    on, may = history.locked, history.candidates
    if moment == "start":
        for first in known[:1]:
            later, now = on[first + 1 :].any(axis=0), on[first]
            yield Contest(first, later & ~now, may & ~later & ~now)
        return
    for at in known[known < len(on) - 1]:
        among = may & ~on[at]
        if moment == "before_masked":
            among &= _most_masked(history.masked[at], among, 2 * history.run.heads)
        yield Contest(at, among & on[at + 1], among & ~on[at + 1])


def _most_masked(masked: np.ndarray, among: np.ndarray, count: int) -> np.ndarray:
    """[head]: whether it is one of so many that were masked most; of equal ones the first.

    They are fewer where fewer were masked at all.
    """
    order = np.argsort(np.where(among, -masked, 1), kind="stable")
    return np.isin(np.arange(len(masked)), order[:count]) & (masked > 0)


def area(values: np.ndarray, locked: np.ndarray, others: np.ndarray) -> float:
    """Share of pairs, 0 to 1, in which a locked head's value exceeds another's; equal, a half."""
    one, other = values[locked][:, None], values[others][None]
    return float(((one > other) + (one == other) / 2).mean())


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: over seeds where there are several, a row per run and moment."""
    rows = []
    for (pair, run), of_run in table.groupby(["pair", "run"], sort=False):
        over = of_run[of_run["seed"] == ""]
        trained = of_run.loc[of_run["seed"] != "", "seed"].nunique()
        for (seed, moment), group in (over if len(over) else of_run).groupby(
            ["seed", "moment"], sort=False
        ):
            row = run_cells(pair, run, seed) | {"measured in": MOMENTS.get(moment, NONE)}
            row["lock-ins"] = mean_count([group["lock_ins"].iloc[0] or 0])
            row["seeds"] = f"{group['seeds'].iloc[0]} of {trained}" if seed == "" else NONE
            found = {each["foretold_by"]: each for each in group.to_dict("records")}
            rows.append(row | {words: _cell(found.get(sign)) for sign, words in SIGNS.items()})
    return pd.DataFrame(rows)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return NONE
    low, high = row["roc_area_low"], row["roc_area_high"]
    interval = "" if low == "" else f" ({low:.2f} to {high:.2f})"
    explored = " (exploratory)" if row["exploratory"] == "yes" else ""
    return f"{row['roc_area']:.2f}{interval}{explored}"
