"""Training with masked heads: how often each was masked, which runs collapsed, how figures say so.

Heads that are masked in nearly every update stop learning and then hurt the model that has them
all; see table headmask_collapse, which looks at test scores as well.
"""

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.base.random_streams import Stream
from headcount.base.settings.training_runs import RunSettings
from headcount.findings.results import HEAD, KEYS, Results, gather, run_of
from headcount.findings.scores import Key

ABANDONED = 0.9  # share of the later updates that mask; a head masked so often hardly learns
ROUNDING = 1e-9  # of shares that are read from a file and averaged
CURVES = ["step", "train_loss", "first_pass_loss"]
COLLAPSED = (
    "Collapsed: heads that training masked nearly always hurt the model that has them all (table "
    "headmask_collapse); how many trainings collapse is a result."
)
"""What a note says where a run is marked."""


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


def late_frequencies(masks: pd.DataFrame, runs: Mapping[str, RunSettings]) -> pd.Series:
    """As `frequencies`, over the second half and of the updates there that mask heads at all.

    `runs` are settings by name. 0 where none of these updates masks.
    """
    parts = [
        _of_masking(rows, runs[run], seed)
        for (_, run, seed), rows in second_half(masks).groupby(KEYS, sort=False)
    ]
    return frequencies(pd.concat([masks[:0], *parts])).fillna(0.0)


def _of_masking(rows: pd.DataFrame, run: RunSettings, seed: int) -> pd.DataFrame:
    """A training's rows of `read_masks`, in which the updates that mask are all that count."""
    intervals = rows[["step", "updates"]].drop_duplicates()
    counts = masking_updates(run, seed, *intervals.to_numpy(dtype=int).T)
    masking = rows["step"].map(dict(zip(intervals["step"], counts, strict=True)))
    shares = (rows["masked"] * rows["updates"] / masking).where(masking > 0, 0.0)
    return rows.assign(masked=shares, updates=masking)


def masking_updates(
    run: RunSettings, seed: int, ends: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """[interval]: updates that mask heads at all: those after the first ones, or that were drawn.

    `ends` are the last updates of the intervals, `lengths` how many each has.
    """
    if (run.probability == 1 and not run.after) or not len(ends):
        return lengths
    draws = [
        run.after < update <= run.rule_from
        or update > run.after
        and Stream.HEAD_MASK.generator(seed, update).random() < run.probability
        for update in range(1, int(max(ends)) + 1)
    ]
    until = np.concatenate([[0], np.cumsum(draws)])
    return until[ends] - until[ends - lengths]


def losses(curve: pd.DataFrame) -> dict[str, float | str]:
    """Mean losses over the updates of a run's intervals; random masks need no first pass.

    Where some intervals have one, both are of these alone: those before `after` have none.
    """
    passes = curve.dropna(subset="first_pass_loss")
    whole = curve if passes.empty else passes
    masked = np.average(whole["train_loss"], weights=whole["updates"])
    if passes.empty:
        return {"first_pass_loss": "", "masked_loss": masked}
    first = np.average(passes["first_pass_loss"], weights=passes["updates"])
    return {"first_pass_loss": first, "masked_loss": masked}


@cache
def collapsed_in_training(results: Results) -> frozenset[Key]:
    """Pair, run and seed of the models of which the training itself shows that it collapsed.

    They masked a head in `ABANDONED` of the later updates or more, and their loss with all heads,
    in the first pass, was above that with masked heads. Reads kinds trained_runs, masks, curves.
    """
    shares = read_masks(results.files("masks"))
    late = late_frequencies(shares, results.runs).groupby(KEYS).max().to_dict()
    files = [path for path in results.files("curves") if run_of(path) in late]
    curves = dict(list(second_half(with_lengths(gather(files, CURVES))).groupby(KEYS)))
    found = []
    for key in set(late) & set(curves):
        loss = losses(curves[key])
        abandoned = late[key] >= ABANDONED - ROUNDING
        measured = loss["first_pass_loss"] != ""
        if abandoned and measured and loss["first_pass_loss"] > loss["masked_loss"]:
            found.append(key)
    return frozenset(found)


def warn_of_collapse(results: Results, pairs: Collection[str]) -> tuple[str, ...]:
    """A warning for each model of these pairs that collapsed, see `collapsed_in_training`."""
    found = sorted(collapsed_in_training(results))
    return tuple(warn_of(*key) for key in found if key[0] in pairs)


def warn_of(pair: str, run: str, seed: int) -> str:
    """The one warning of a training that collapsed, wherever its scores stand."""
    return (
        f"{run}, seed {seed} of {pair} collapsed in training (table headmask_collapse): heads that "
        "it masked nearly always hurt the model that its scores are of."
    )


def collapse_words(collapsed: Collection[Key], rows: pd.DataFrame) -> dict[str, str]:
    """By run, what a legend says of those that collapsed: in which pairs and seeds, if not in all.

    `rows` have the models of a figure: columns pair, run and seed.
    """
    found = {}
    for run, models in rows[KEYS].drop_duplicates().groupby("run", sort=False):
        keys = list(models.itertuples(index=False, name=None))
        failed = [key for key in keys if key in collapsed]
        if failed:
            pairs = models["pair"].nunique() > 1
            names = [f"{pair}, " * pairs + f"seed {seed}" for pair, _, seed in failed]
            which = "" if len(failed) == len(keys) else f"{', '.join(names)} "
            found[run] = f"{which}collapsed"
    return found


def collapse_notes(words: Collection[str]) -> tuple[str, ...]:
    """The note of a figure that marks a run, else none."""
    return (COLLAPSED,) if words else ()
