"""Whether Impt-N went wrong: heads masked in nearly every update stop learning and then hurt.

Such a head disturbs whenever the first pass switches it on; |∂L/∂ξ| is large for harm as well as
for help, so it is picked again, update after update, and is on at test time.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from headcount.base.settings.training_runs import RunSettings
from headcount.findings import exhibits
from headcount.findings.headmask.importance import (
    describe_measured,
    number,
    of_heads,
    read_importance,
)
from headcount.findings.masked_training import (
    ABANDONED,
    CURVES,
    ROUNDING,
    frequencies,
    late_frequencies,
    losses,
    read_masks,
    second_half,
    warn_of,
    with_lengths,
)
from headcount.findings.masking import describe_tests, read_masking
from headcount.findings.results import HEAD, KEYS, Results, gather
from headcount.findings.scores import Key
from headcount.findings.setting import of_one_training
from headcount.findings.tables import NONE, Table

CAPTION = (
    "Did training with masked heads collapse? It did where heads that were masked nearly always "
    "hurt the model that has them all."
)
NOTES = (
    "Frequency: share of updates that masked a head. Abandoned heads: masked in at least "
    f"{100 * ABANDONED:.0f} % of the updates of the second half (in a run that masks with "
    "probability p, or only after some updates, of those that mask). Share of the N most masked: "
    "their share of all masks of the run. First pass and masked: loss per target token (nats, "
    "label-smoothed) over the second half, with all heads and without dropout, and as trained; "
    "the latter is over all updates, in a run with probability p or after also those that mask "
    "nothing, but of intervals without a first pass only if none has one. The second half: "
    "validation intervals that lie wholly in it. Importance of the N most masked heads: relative "
    "to the mean head. Top group masked: change in BLEU on the first sentences of the first test "
    "set when the most important of the groups of figure 4, by the trained model's own ranking, "
    "is masked in it, with its 95 % interval over test sentences. "
    "Collapsed: yes if there is an abandoned head and harm is seen, either in a loss of the "
    "first pass above the masked loss, or in that interval, if it lies above 0.",
    of_one_training("test sentences"),
)
_UNMASKED = {
    **dict.fromkeys(("largest_frequency", "median_frequency", "late_largest_frequency"), 0.0),
    "abandoned_heads": 0,
    **dict.fromkeys(
        ("top_n_share", "most_masked_importance", "first_pass_loss", "masked_loss"), ""
    ),
}
_TOP_GROUP = {
    "top_group_delta": "delta",
    "top_group_low": "delta_low",
    "top_group_high": "delta_high",
}
COLUMNS = [*KEYS, "heads", "n", *_UNMASKED, *_TOP_GROUP, "collapsed"]


@exhibits.table("headmask_collapse", needs=("masked", "masks", "curves"))
def collapse(results: Results) -> Table:
    """Collapse of masked training."""
    tidy = _evidence(results)
    tests = results.read(describe_tests, "masking_facts")
    notes = (*NOTES, tests, *describe_measured(results))
    return Table(tidy, _summary(tidy), CAPTION, notes, _warnings(tidy))


@cache
def _evidence(results: Results) -> pd.DataFrame:
    return collapse_table(
        results.runs,
        results.read(read_importance, "importance"),
        results.read(read_masks, "masks"),
        with_lengths(gather(results.files("curves"), CURVES)),
        results.read(read_masking, "masking"),
    )


def collapsed_models(results: Results) -> set[Key]:
    """Pair, run and seed of the models that the table calls collapsed.

    None are known without masks or curves.
    """
    if not (results.files("masks") and results.files("curves")):
        return set()
    found = _evidence(results).query("collapsed == 'yes'")
    return set(found[KEYS].itertuples(index=False, name=None))


def _warnings(table: pd.DataFrame) -> tuple[str, ...]:
    """A sentence for each run and seed that collapsed."""
    found = table.loc[table["collapsed"] == "yes", KEYS]
    return tuple(warn_of(*key) for key in found.itertuples(index=False, name=None))


def collapse_table(
    runs: Mapping[str, RunSettings],
    importance: pd.DataFrame,
    masks: pd.DataFrame,
    curves: pd.DataFrame,
    masking: pd.DataFrame,
) -> pd.DataFrame:
    """Evidence of collapse, a run and seed a row: columns of `COLUMNS`.

    `runs` are settings by name. The tables are those that `read_importance`, `read_masks`,
    `with_lengths` (of curves.csv, `CURVES`) and `read_masking` return. Runs that mask no head in
    training stand there to compare with; a cell is empty where a number does not apply.
    """
    often, late = frequencies(masks), late_frequencies(masks, runs)
    later = second_half(curves)
    rows = []
    for key, heads in of_heads(importance).groupby(KEYS, sort=False):
        run = runs[key[1]]
        row = dict(zip(KEYS, key, strict=True)) | {"heads": len(heads), "n": run.heads or 0}
        row |= _UNMASKED | _top_group(_of(masking, key))
        if run.heads:
            values = heads.set_index(HEAD)["value"]
            row |= _masked(often.loc[key], late.loc[key], values, run.heads)
            row |= losses(_of(later, key))
        louder = row["first_pass_loss"] != "" and row["first_pass_loss"] > row["masked_loss"]
        better_without = row["top_group_low"] != "" and row["top_group_low"] > 0
        harmed = row["abandoned_heads"] and (louder or better_without)
        rows.append(row | {"collapsed": "yes" if harmed else "no"})
    return pd.DataFrame(rows, columns=COLUMNS)


def _of(table: pd.DataFrame, key: tuple) -> pd.DataFrame:
    """The rows of one run and seed."""
    return table[(table[KEYS] == list(key)).all(axis=1)]


def _masked(
    often: pd.Series, late: pd.Series, importance: pd.Series, count: int
) -> dict[str, float | str]:
    """Evidence from shares by head: of all updates, and of the later ones that do mask."""
    most = often.sort_values(ascending=False, kind="stable").index[:count]
    total = often.sum()
    return {
        "largest_frequency": often.max(),
        "median_frequency": often.median(),
        "late_largest_frequency": late.max(),
        "abandoned_heads": int((late >= ABANDONED - ROUNDING).sum()),
        "top_n_share": often[most].sum() / total if total else "",
        "most_masked_importance": importance[most].mean() / importance.mean(),
    }


def _top_group(masking: pd.DataFrame) -> dict[str, float | str]:
    """What masking the most important group does on the first test set."""
    groups = masking[masking["order"] == "group"]
    if groups.empty:
        return dict.fromkeys(_TOP_GROUP, "")
    top = groups.loc[groups["index"].idxmin()]
    return {name: top[column] for name, column in _TOP_GROUP.items()}


_SHOWN = {
    "largest_frequency": "largest frequency",
    "median_frequency": "median frequency",
    "abandoned_heads": "abandoned heads",
    "top_n_share": "share of the N most masked",
    "first_pass_loss": "first pass",
    "masked_loss": "masked",
    "most_masked_importance": "importance of the N most masked",
}


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per run and seed."""
    shown = table[[*KEYS, "n"]].rename(columns={"n": "N"})
    for column, words in _SHOWN.items():
        shown[words] = [_cell(value) for value in table[column]]
    shown["top group masked"] = [
        f"{delta:+z.2f} ({low:+z.2f} to {high:+z.2f})" if delta != "" else NONE
        for delta, low, high in table[list(_TOP_GROUP)].itertuples(index=False)
    ]
    return shown.assign(collapsed=table["collapsed"])


def _cell(value: Any) -> str:
    """A count, a number, or a dash where none applies."""
    if isinstance(value, str):
        return NONE
    return str(value) if isinstance(value, int | np.integer) else number(value)
