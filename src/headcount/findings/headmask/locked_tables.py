"""Heads that masked training locked in: how many, when, of what sign, and whether foretold."""

from functools import cache
from typing import Any

import pandas as pd

from headcount.base.addresses import Head
from headcount.findings import exhibits
from headcount.findings.headmask.importance import number
from headcount.findings.headmask.locked_evidence import (
    PREDICTIONS,
    head_rows,
    model_rows,
)
from headcount.findings.headmask.locked_in import SHORTEST, History, histories, read_slopes
from headcount.findings.masked_training import ABANDONED, read_masks
from headcount.findings.results import KEYS, Results, run_of
from headcount.findings.setting import describe_setting
from headcount.findings.tables import NONE, Table, mean_count, p_value, run_cells

LOCKED_IN = (
    f"Locked in: masked in at least {100 * ABANDONED:.0f} % of the updates of each of the "
    f"validation intervals that follow one another over {SHORTEST} updates or more (in a run that "
    "masks with a probability, of those that do mask); intervals with an update before the rule "
    "begins (after, held) do not count."
)
"""What it means, for notes."""

SLOPE = (
    "Slope: ∂L/∂ξ by the head's multiplier in the first pass, nats, of a sentence's training loss: "
    "label-smoothed, summed over its tokens, with all heads and without dropout; above 0 where it "
    "would fall without the head, to first order."
)
"""What it means, for notes."""

CAPTION = (
    "Which trainings locked heads in, and what these heads were: of harm, to first order, if their "
    "mean slope is above 0. A mean about as large as the mean size is no noise."
)
NOTES = (
    LOCKED_IN,
    SLOPE,
    "Mean ÷ size: size of the mean slope over an interval's sentences, divided by the mean "
    "importance there, before any moving average, which is of the run's units: of sentences, or "
    "of batches, positions or tokens where its name says so. Near 1 all of them agree, near 0 "
    "the slope is noise about 0. Ratios of different units cannot be compared, those of locked "
    "and other heads of a run can. ± after a slope: its standard deviation over sentences, over "
    "seeds their mean. Of locked heads means over heads, while each was locked in; of others the "
    "median of the heads that never were, while any head was.",
    "Foretold by the hold: how many of the heads that were locked in after the held updates are "
    "the N that were held. In the first self-attention of the decoder: how many of them are "
    "heads of that layer. Table headmask_foreseen has other forecasts. By chance: the "
    "hypergeometric mean, locked heads × foretold heads / heads that may be masked; where the "
    "held heads are drawn from one layer, all of these are of that layer. p: the exact chance of "
    "as many or more; over seeds, of their sum in the trainings that can test the forecast, "
    "while the numbers are of all. Of heads of one layer it is the chance if each training drew "
    "the layer among those whose heads may be masked: heads of a layer are locked in together, "
    "so that they count as one; where a run holds heads of one layer, there is no such forecast. "
    "Runs of one seed have the same initial weights and data, and do not confirm one another. "
    "Exploratory: the forecast was found on this training, which cannot test it. Of several "
    "seeds: means over those that have the number, as only seeds that lock heads in have a "
    "slope; their t intervals are in the CSV. A dash: no head that might have been foretold was "
    "locked in.",
)
HEADS_CAPTION = (
    "Every head that was locked in, and its slope meanwhile. A model without one has a row that "
    "names no head."
)
HEADS_NOTE = (
    "Locked in: from the first interval to the last, perhaps with gaps. Importance: what the first "
    "passes measured, by the same loss and in the run's units, in the interval before the first, "
    "in the first and in the last of the training."
)


@exhibits.table("headmask_locked", needs=("masks", "slopes"))
def locked(results: Results) -> Table:
    """Heads locked in by masked training."""
    found = recorded(results)
    tidy = model_rows(found)
    notes = (*NOTES, *_setting(results, tidy))
    return Table(tidy, _summary(tidy), CAPTION, notes, _warnings(found))


@exhibits.table("headmask_locked_heads", needs=("masks", "slopes"))
def locked_heads(results: Results) -> Table:
    """The heads that masked training locked in."""
    tidy = pd.concat(map(head_rows, recorded(results)), ignore_index=True)
    notes = (LOCKED_IN, SLOPE, HEADS_NOTE, *_setting(results, tidy))
    return Table(tidy, _heads_summary(tidy), HEADS_CAPTION, notes)


@cache
def recorded(results: Results) -> list[History]:
    """What every training recorded of its heads, in the files' order."""
    models = map(run_of, results.files("masks"))
    runs = {key: results.runs[key[1]] for key in models}
    tables = results.read(read_masks, "masks"), results.read(read_slopes, "slopes")
    return histories(runs, results.model.grid.heads(), *tables)


def _setting(results: Results, rows: pd.DataFrame) -> tuple[str, str]:
    return describe_setting(results, rows[rows["seed"] != ""])


def _warnings(found: list[History]) -> tuple[str, ...]:
    """A sentence for each training of which nobody can say which heads were held."""
    return tuple(
        f"{run}, seed {seed} of {pair}: no validation lies within its {history.run.held} held "
        "updates, so that the heads that were held are not known; lower train.dev_interval."
        for history in found
        if history.run.held and history.held is None
        for pair, run, seed in [history.key]
    )


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model, and one over the seeds of each run."""
    shown = pd.DataFrame([_cells(row) for row in table.to_dict("records")])
    told = [words for words in _FORETOLD.values() if (shown[words] == NONE).all()]
    return shown.drop(columns=told)


_FORETOLD = {
    "held": "foretold by the hold",
    "place": "in the first self-attention of the decoder",
}


def _cells(row: dict[str, Any]) -> dict[str, str]:
    cells = run_cells(row["pair"], row["run"], row["seed"]) | {"N": str(row["n"])}
    cells["held updates"] = str(row["held"])
    seeds = f" ({row['seeds_locked']} of {row['seeds']} seeds)" if row["seed"] == "" else ""
    cells["locked in"] = mean_count([row["locked_ever"]]) + seeds
    cells["at the end"] = _count(row["locked_at_end"])
    cells["from update"] = _count(row["locked_from"])
    cells["for updates"] = _count(row["locked_longest"])
    for of in ("locked", "others"):
        ratio = row[f"{of}_slope_ratio"]
        cells[f"mean ÷ size, {of}"] = NONE if ratio == "" else number(ratio)
    for of in ("locked", "others"):
        cells[f"slope, {of}"] = _with_deviation(row[f"{of}_slope"], row[f"{of}_slope_sd"])
    return cells | {words: _foretold(row, name) for name, words in _FORETOLD.items()}


def _count(mean: float | str) -> str:
    return NONE if mean == "" else mean_count([mean])


def _with_deviation(slope: float | str, deviation: float | str) -> str:
    return NONE if slope == "" else f"{_signed(slope)} ± {number(deviation)}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}".replace("-", "−")


def _foretold(row: dict[str, Any], name: str) -> str:
    """How many heads, which share of those locked in, how many by chance, and p if it has one.

    Over seeds, all are means: that of the shares is not the share that the mean numbers have.
    """
    both, expected, precision, _, p = (row[column] for column in PREDICTIONS[name])
    if both == "" or precision == "":
        return NONE
    tested = f"p {p_value(p)}" if p != "" else "exploratory"
    mean = "on average " * (row["seed"] == "")
    share = f"{mean}{100 * precision:.0f} % of them"
    return f"{_count(both)}, {share} (by chance {number(expected)}; {tested})"


def _heads_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per head."""
    rows = []
    for row in table.to_dict("records"):
        cells = run_cells(*(row[key] for key in KEYS))
        named = row["kind"] != ""
        cells["head"] = Head(row["kind"], row["layer"], row["head"]).name() if named else NONE
        times = f"{row['locked_from']} to {row['locked_to']}"
        cells["locked in, updates"] = times if named else NONE
        cells["intervals"] = _count(row["locked_intervals"])
        cells["slope"] = _with_deviation(row["slope_mean"], row["slope_sd"])
        for when, words in (("before", "before"), ("locked", "then"), ("end", "at the end")):
            size = row[f"importance_{when}"]
            cells[f"importance {words}"] = NONE if size == "" else number(size)
        rows.append(cells | {"held": row["was_held"] or NONE})
    return pd.DataFrame(rows)
