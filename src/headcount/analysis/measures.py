"""Measures of heads: their descriptions in `measures.yaml`, and functions that read their values.

A new measure is one entry there, with a `reader` here unless a file has it as a statistic.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd
from pydantic import RootModel

from headcount.analysis.collapse import frequencies, with_updates
from headcount.analysis.frames import HEAD, RUN, Data
from headcount.analysis.roles import arrow, preferred
from headcount.base.settings.reader import read_settings
from headcount.base.settings.runs import RANDOM_WEIGHTS, PrunedSettings
from headcount.base.settings.section import Section

COLUMNS = [*RUN, *HEAD, "measure", "of", "value", "note"]


class Measure(Section):
    """One number that a head has."""

    title: str
    unit: str

    more: str
    """What a larger value means."""

    source: str
    """The files that have it."""

    group: str = "What it is worth"

    around_zero: bool = False
    """Whether values above and below 0 mean opposite things."""

    size: bool = False
    """Whether the sign says nothing about the importance of the head, so that it is removed."""

    compared: bool = False
    """Whether larger values mean more important heads, in table voita_agreement."""

    ablation: bool = False
    """Whether it is measured by removing heads."""

    function: str = ""
    """The reader of its values; without one they are a statistic of this name in a file."""


READERS: dict[str, Callable[..., pd.DataFrame]] = {}
"""Functions that return pair, run, seed, the address of a head and `value`.

`of` is a relation or a run where a head has several values; `note` is a text beside the value.
"""


def reader(function: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Register a function that reads the values of a measure."""
    READERS[function.__name__] = function
    return function


@cache
def measures_by_name() -> dict[str, Measure]:
    """Return all measures by name, in the order of tables."""
    path = Path(__file__).with_suffix(".yaml")
    return read_settings(path, RootModel[dict[str, Measure]]).root


def all_measures(data: Data) -> pd.DataFrame:
    """Return all measures of the heads of trained and pruned models, a value in each row."""
    return _read(data, measures_by_name())


def compared_measures(data: Data) -> pd.DataFrame:
    """Return the measures of heads that table voita_agreement compares, a value in each row."""
    return _read(data, {name: m for name, m in measures_by_name().items() if m.compared})


def _read(data: Data, measures: dict[str, Measure]) -> pd.DataFrame:
    rows = data.call(statistics)
    parts = [rows[rows["measure"].isin(list(measures))]]
    for name, measure in measures.items():
        if measure.function:
            parts.append(data.call(READERS[measure.function]).assign(measure=name))
    filled = [part for part in parts if len(part)]
    return pd.concat(filled or parts[:1], ignore_index=True).reindex(columns=COLUMNS)


def statistics(
    measures: pd.DataFrame,
    loss_change: pd.DataFrame,
    more_measures: pd.DataFrame,
    pruned_attention: pd.DataFrame,
) -> pd.DataFrame:
    """Return the measures that are statistics of files; the size of those whose sign is no part."""
    rows = pd.concat([measures, loss_change, more_measures, pruned_attention], ignore_index=True)
    rows = rows.rename(columns={"statistic": "measure"})
    sizes = [name for name, measure in measures_by_name().items() if measure.size]
    value = rows["value"].astype(float)
    return rows.assign(value=value.mask(rows["measure"].isin(sizes), value.abs()))


@reader
def gate_survival(kept: pd.DataFrame, pruned_runs: dict[str, PrunedSettings]) -> pd.DataFrame:
    """Return the share of the gates runs with λ above 0 on a model that leave a head."""
    return _survival(kept, {k: run for k, run in _by(pruned_runs, "gates").items() if run.lambda_})


@reader
def subset_survival(kept: pd.DataFrame, pruned_runs: dict[str, PrunedSettings]) -> pd.DataFrame:
    """Return the share of the runs that leave exactly K heads of a model and leave this head."""
    return _survival(kept, _by(pruned_runs, "subset"))


def _by(runs: dict[str, PrunedSettings], method: str) -> dict[str, PrunedSettings]:
    return {name: run for name, run in runs.items() if run.method == method}


def _survival(kept: pd.DataFrame, runs: dict[str, PrunedSettings]) -> pd.DataFrame:
    gates = at_start(in_scope(kept[kept["statistic"] == "gate"], runs))
    left = gates.assign(value=gates["value"].ne(0).astype(float))
    return left.groupby([*RUN, *HEAD], sort=False)["value"].mean().reset_index()


def in_scope(rows: pd.DataFrame, runs: dict[str, PrunedSettings]) -> pd.DataFrame:
    """Return rows of these pruned runs, for heads in the scope of the run; adds column `start`."""
    scope = [(name, kind, run.start) for name, run in runs.items() for kind in run.kinds]
    return rows.merge(pd.DataFrame(scope, columns=["run", "kind", "start"]), on=["run", "kind"])


def at_start(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of pruned runs as rows of the models at their `start`, if it is a model."""
    return rows[rows["start"] != RANDOM_WEIGHTS].assign(run=rows["start"])


@reader
def gate_open(kept: pd.DataFrame, pruned_runs: dict[str, PrunedSettings]) -> pd.DataFrame:
    """Return the probability that the gate of a head is not 0 at the end of a gates run."""
    closed = _learnt(kept[kept["statistic"] == "p_zero"], _by(pruned_runs, "gates"))
    return closed.assign(value=1 - closed["value"])


@reader
def subset_weight(kept: pd.DataFrame, pruned_runs: dict[str, PrunedSettings]) -> pd.DataFrame:
    """Return w of a head at the end of a subset run: the heads with the K largest w stay."""
    return _learnt(kept[kept["statistic"] == "w"], _by(pruned_runs, "subset"))


def _learnt(rows: pd.DataFrame, runs: dict[str, PrunedSettings]) -> pd.DataFrame:
    """Return rows of pruned runs twice: for the pruned model and for the model at its start."""
    chosen = in_scope(rows, runs).assign(of=lambda rows: rows["run"])
    return pd.concat([chosen, at_start(chosen)], ignore_index=True)


@reader
def score_lost(ablation: pd.DataFrame) -> pd.DataFrame:
    """Return the score that is lost if only this head is masked, on the first test set, not dev."""
    single = ablation[(ablation["order"] == "single") & (ablation["test_set"] != "dev")]
    first = single.groupby(RUN, sort=False)["test_set"].transform("first")
    lost = single[single["test_set"] == first].copy()
    ends = zip(0 - lost["delta_high"], 0 - lost["delta_low"], strict=True)
    lost["note"] = [f"95\u00a0%: {low:.2g} to {high:.2g}" for low, high in ends]
    return lost.assign(value=-lost["delta"])


@reader
def position(positions: pd.DataFrame, pruned_positions: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the largest weights at the relative position that a head prefers."""
    most = preferred(pd.concat([positions, pruned_positions], ignore_index=True))
    return most.assign(note="at " + most["offset"].map("{:+d}".format).replace("+0", "0"))


@reader
def syntax(syntax: pd.DataFrame, pruned_syntax: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy above the positional baseline in points, by relation and treebank."""
    rows = pd.concat([syntax, pruned_syntax], ignore_index=True)
    ends = zip(rows["relation"], rows["direction"], rows["treebank"], strict=True)
    of = [f"{relation} {arrow(relation, way)} ({bank})" for relation, way, bank in ends]
    notes = [f"accuracy {100 * share:.0f}\u00a0%" for share in rows["hits"] / rows["trials"]]
    above = 100 * (rows["hits"] - rows["baseline_hits"]) / rows["trials"]
    return rows.assign(of=of, value=above, note=notes)


@reader
def masked(masks: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the updates of a training that masked a head."""
    return frequencies(with_updates(masks)).rename("value").reset_index()
