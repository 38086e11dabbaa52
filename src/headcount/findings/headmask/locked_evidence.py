"""Numbers on heads that were locked in: how long, of what sign, and whether they were foretold."""

from collections import Counter
from collections.abc import Sequence
from itertools import compress

import numpy as np
import pandas as pd

from headcount.findings.headmask.locked_in import History, spells
from headcount.findings.results import HEAD, KEYS
from headcount.findings.scores import Key
from headcount.findings.significance import Overlap, drawn_p, overlap_p, paired_t
from headcount.findings.tables import fill_empty

_TIMES = ["locked_ever", "locked_at_end", "locked_from", "locked_longest"]
_SLOPES = [
    f"{of}_{what}" for what in ("slope_ratio", "slope", "slope_sd") for of in ("locked", "others")
]
PREDICTIONS = {
    name: [f"{name}_{what}" for what in ("both", "expected", "precision", "recall", "p")]
    for name in ("held", "place")
}
"""Columns of each prediction: from held heads, and from `PLACE`."""

PLACE = ("dec_self", 0)
"""Kind and layer whose heads are foretold: in the trainings that this was found on, no others were
locked in."""

EXPLORED = {
    "place": {"synthetic.en-art": (1, 2, 3), "multi30k.en-de": (1,)},
    "first_decoder_self": {"synthetic.en-art": (1, 2, 3), "multi30k.en-de": (1,)},
    "first_decoder": {"synthetic.en-art": (1, 2, 3, 4, 5, 6), "multi30k.en-de": (1,)},
}
"""By forecast and pair, the seeds of trainings that it was found on, which cannot test it: `PLACE`,
which is sign `first_decoder_self` of table headmask_foreseen, and sign `first_decoder` of that."""

TESTED = ["locked_ever", "locked_slope_ratio", "locked_slope"]
"""Columns with a t interval over seeds, where all of them have the number."""

MEANS = [*_TIMES, *_SLOPES, *sum(PREDICTIONS.values(), [])]
COLUMNS = [*KEYS, "heads", "n", "held", *MEANS, "seeds", "seeds_locked"]
COLUMNS += [f"{column}_{end}" for column in TESTED for end in ("low", "high")]
HEAD_COLUMNS = [*KEYS, *HEAD, "locked_from", "locked_to", "locked_intervals", "locked_updates"]
HEAD_COLUMNS += ["slope_mean", "slope_sd", "importance_before", "importance_locked"]
HEAD_COLUMNS += ["importance_end", "was_held"]


def model_rows(histories: Sequence[History]) -> pd.DataFrame:
    """A training a row, then a row over the seeds of each run that has several: `COLUMNS`.

    Empty cells: what does not apply, and p where the forecast was found on the training, see
    `can_test`, or where no head that might have been foretold was locked in. Over seeds: means of
    what is known, no interval if that is not of all; p of all trainings together that can test the
    forecast.
    """
    rows, of_runs = [], {}
    for history in histories:
        of_runs.setdefault(history.key[:2], []).append(history)
    for of_run in of_runs.values():
        known = [_overlaps(history) for history in of_run]
        table = pd.DataFrame(map(_row, of_run, known), columns=COLUMNS)
        rows.append(table.astype(object))
        if len(of_run) > 1:
            rows.append(
                pd.DataFrame([_over_seeds(table, of_run, known)], columns=COLUMNS).astype(object)
            )
    return fill_empty(pd.concat(rows, ignore_index=True))


def _overlaps(history: History) -> dict[str, Overlap]:
    """What of each forecast of a training came true; those that it has."""
    found = {name: predict(history, name) for name in PREDICTIONS}
    return {name: overlap for name, overlap in found.items() if overlap is not None}


def _row(history: History, overlaps: dict[str, Overlap]) -> dict[str, object]:
    run = history.run
    row = dict(zip(KEYS, history.key, strict=True))
    row |= {"heads": len(history.heads), "n": run.heads or 0, "held": run.held}
    row |= _times(history) | _sizes(history)
    for name, overlap in overlaps.items():
        row |= _overlap_cells(name, overlap) | _chance(name, [(history, overlap)])
    return row | {"seeds": 1, "seeds_locked": int(history.ever.any())}


def _times(history: History) -> dict[str, object]:
    """How many heads were locked in, from which update, and for how many updates at most."""
    stretches = [stretch for head in history.locked.T for stretch in spells(head)]
    at_end = history.locked[-1:].any(axis=0)  # of a training without intervals none
    times = {"locked_ever": int(history.ever.sum()), "locked_at_end": int(at_end.sum())}
    if not stretches:
        return times
    longest = max(history.lengths[first:past].sum() for first, past in stretches)
    start = history.starts[min(stretches)[0]]
    return times | {"locked_from": int(start), "locked_longest": int(longest)}


def _sizes(history: History) -> dict[str, object]:
    """Derivatives of heads while they were locked in, and of the others at those times.

    Of locked heads the mean, of the others the median. Nothing for a run that never locks.
    """
    if not history.ever.any():
        return {}
    weights = history.lengths[:, None] * history.locked
    during = history.lengths * history.locked.any(axis=1)
    others = np.broadcast_to(during[:, None], weights.shape)
    found = {}
    for of, given, chosen, average in (
        ("locked", weights, history.ever, np.mean),
        ("others", others, ~history.ever, np.median),
    ):
        size = mean_over(np.abs(history.slope_mean), given)
        values = {
            "slope": mean_over(history.slope_mean, given),
            "slope_sd": mean_over(history.slope_sd, given),
        }
        if not history.run.signed:  # signed ones rank by the derivative itself
            values["slope_ratio"] = size / mean_over(history.importance, given)
        for what, of_heads in values.items():
            known = of_heads[chosen & ~np.isnan(of_heads)]
            found[f"{of}_{what}"] = float(average(known)) if known.size else ""
    return found


def mean_over(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[head]: weighted mean over the intervals in which a value [interval, head] is known.

    NaN where there is none.
    """
    given = np.where(np.isnan(values), 0.0, weights)
    total = given.sum(axis=0)
    sums = (np.nan_to_num(values) * given).sum(axis=0)
    return np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0)


def predict(history: History, name: str) -> Overlap | None:
    """How far the heads that were foretold are those that were locked in; None without a forecast.

    `held`: the heads that were masked in the held updates, among those that the draw might have
    taken. `place`, of runs of importance: the heads of one layer, `PLACE`, that may be masked; not
    where the run itself holds heads of one layer.
    """
    told = history.held if name == "held" else _place(history)
    if told is None:
        return None
    things = history.holdable if name == "held" else history.candidates
    sets = (things, told, history.ever & things, told & history.ever)
    return Overlap(*(int(chosen.sum()) for chosen in sets))


def _place(history: History) -> np.ndarray | None:
    """[head]: the forecast of `predict`."""
    if history.run.method != "importance" or history.run.held_in or not history.ever.any():
        return None
    told = np.array([(head.kind, head.layer) == PLACE for head in history.heads])
    told &= history.candidates
    return told if told.any() else None


def can_test(key: Key, name: str) -> bool:
    """Whether a training can test a forecast, which was not found on it."""
    pair, _, seed = key
    return seed not in EXPLORED.get(name, {}).get(pair, ())


def _chance(name: str, told: Sequence[tuple[History, Overlap]]) -> dict[str, float]:
    """P of a forecast in some trainings together; nothing where they have nothing to test it on.

    Heads of a layer are no trials of their own, as one may lock in because another did. So the p of
    `place` is of layers: each training draws one of those that may be masked.
    """
    known = [(of, found) for of, found in told if can_test(of.key, name) and found.second]
    if not known:
        return {}
    if name == "place":
        both = sum(found.both for _, found in known)
        return {f"{name}_p": drawn_p([_by_layer(of) for of, _ in known], both)}
    return {f"{name}_p": overlap_p([found for _, found in known])}


def _by_layer(history: History) -> list[int]:
    """How many heads were locked in, of each kind and layer that has heads that may be masked."""
    layers = [(head.kind, head.layer) for head in history.heads]
    may, ever = (Counter(compress(layers, of)) for of in (history.candidates, history.ever))
    return [ever[layer] for layer in may]


def _overlap_cells(name: str, overlap: Overlap) -> dict[str, object]:
    values = {"both": overlap.both, "expected": overlap.expected}
    if overlap.second:
        values["precision"] = overlap.both / overlap.second
    if overlap.first:
        values["recall"] = overlap.both / overlap.first
    return {f"{name}_{what}": value for what, value in values.items()}


def _over_seeds(
    of_run: pd.DataFrame, recorded: list[History], overlaps: list[dict[str, Overlap]]
) -> dict[str, object]:
    """The row over the seeds of one run."""
    row = of_run.iloc[0][["pair", "run", "heads", "n", "held"]].to_dict() | {"seed": ""}
    for column in MEANS:
        known = pd.to_numeric(of_run[column]).dropna().to_numpy()
        if known.size:
            row[column] = float(known.mean())
        of_all = known.size == len(of_run)
        if column in TESTED and of_all and np.ptp(known):  # equal seeds prove nothing
            tested = paired_t(known)
            row |= {f"{column}_low": tested.low, f"{column}_high": tested.high}
    both = list(zip(recorded, overlaps, strict=True))
    for name in PREDICTIONS:
        row |= _chance(name, [(of, found[name]) for of, found in both if name in found])
    return row | {"seeds": len(of_run), "seeds_locked": int(of_run["seeds_locked"].sum())}


def head_rows(history: History) -> pd.DataFrame:
    """A head that was locked in a row, in the model's order: `HEAD_COLUMNS`.

    The derivative is a mean over the updates in which it was; empty cells: what was not measured.
    A training without such a head has a row that names none.
    """
    rows = [_head(history, place) for place in np.flatnonzero(history.ever)]
    table = pd.DataFrame(rows or [{}], columns=HEAD_COLUMNS)
    return fill_empty(table.assign(**dict(zip(KEYS, history.key, strict=True))).astype(object))


def _head(history: History, place: int) -> dict[str, object]:
    on = np.flatnonzero(history.locked[:, place])
    weights, sizes = history.lengths[on], history.importance[:, place]
    means = {
        name: mean_over(values[on, place][:, None], weights[:, None])[0]
        for name, values in (("slope_mean", history.slope_mean), ("slope_sd", history.slope_sd))
    }
    row = dict(zip(HEAD, history.heads[place], strict=True))
    row |= {"locked_from": int(history.starts[on[0]]), "locked_to": int(history.ends[on[-1]])}
    row |= {"locked_intervals": len(on), "locked_updates": int(weights.sum())} | means
    row |= {"importance_before": sizes[on[0] - 1]} if on[0] else {}
    row |= {"importance_locked": sizes[on[0]], "importance_end": sizes[-1]}
    if history.held is not None:
        row["was_held"] = "yes" if history.held[place] else "no"
    return row
