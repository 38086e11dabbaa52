"""Classifiers without some of their heads: accuracy in place of BLEU.

What the paper prints of its BERT on MultiNLI stands beside: one head left in a layer, the
correlation of two test sets, and the share that can be pruned. A classifier has one kind of
attention, so curves over heads of one kind are left out: they are those over all heads.
"""

from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import TypeVar

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings import exhibits
from headcount.findings.figures import Drawn
from headcount.findings.michel import curves, pruning, single, transfer
from headcount.findings.michel.measured import (
    ABLATION,
    ACCURACY,
    FIRST_ALONE,
    count_units,
    masked_rows,
)
from headcount.findings.published import michel
from headcount.findings.results import Results, gather, run_of
from headcount.findings.tables import Table

_IMPORTANCE = (
    "Importance: size of the derivative of a pair's loss by a head's multiplier, mean over dev, "
    "divided by its layer's L2 norm unless the settings say otherwise. " + FIRST_ALONE
)
_PAPER = {"pair": "MultiNLI", "run": michel.CLASSIFIER, "seed": "", "test_set": "matched"}
_SCRIPT = "scripts/classifier_ablation.py"
_TESTS = ["dev", "matched", "mismatched"]
_Made = TypeVar("_Made", Table, Drawn)


@exhibits.table("michel_classifier_ablation", needs=("classified",))
def ablation(results: Results) -> Table:
    """Accuracy without each head."""
    none = pd.DataFrame()
    return _named(single.single_table(_masked(results), none, ACCURACY, _describe(results)))


@exhibits.table("michel_classifier_all_but_one", needs=("classified",))
def all_but_one(results: Results) -> Table:
    """Tables 3 and 6: one head left in a layer of a classifier."""
    notes = (
        f"Rows whose source is paper: {michel.SOURCE}, Tables 3 (as our dev; best on matched "
        "itself) and 6 (best on 5,000 training pairs, scored on matched).",
        *_describe(results),
    )
    printed = _printed_all_but_one()
    return _named(single.all_but_one_table(_masked(results), printed, ACCURACY, notes))


@exhibits.table("michel_classifier_transfer", needs=("classified",))
def transfer_of_heads(results: Results) -> Table:
    """Effects of a classifier's heads on two test sets, as numbers."""
    paper = f"The paper's row: {michel.SOURCE}, Figure 2, its BERT on MultiNLI."
    notes = (paper, *_describe(results))
    return _named(transfer.transfer_table(_masked(results), _printed_transfer(), ACCURACY, notes))


@exhibits.table("michel_classifier_pruning", needs=("classifier_profiles", "classified"))
def pruned(results: Results) -> Table:
    """How many heads of a classifier can be pruned."""
    shares = michel.classifier_prunable()
    notes = (
        _IMPORTANCE,
        f"The paper's row: {michel.SOURCE}, its BERT on MultiNLI, of which it says that "
        f"{shares['mnli']} % can go without a noticeable loss (on SST-2 {shares['sst2']} %, on "
        f"CoLA {shares['cola']} %, on MRPC {shares['mrpc']} %); no p is printed.",
        *_describe(results),
    )
    counts = count_units(results.files("classifier_facts"), ACCURACY)
    ours = pruning.judged_curves(_points(results)).merge(counts, "left")
    return _named(pruning.pruning_table(ours, _printed_pruning(), ACCURACY, notes))


@exhibits.table("michel_classifier_areas", needs=("classifier_areas", "classified"))
def areas(results: Results) -> Table:
    """Mean accuracy over the steps of pruning."""
    ours = _over_all(results.files("classifier_areas"), pruning.AREAS)
    notes = (_IMPORTANCE, *_describe(results))
    return _named(pruning.areas_table(ours, pd.DataFrame(), ACCURACY, notes))


@exhibits.figure(
    "michel_classifier_ablation", needs=("classified",), beside="michel_classifier_ablation"
)
def ablation_maps(results: Results) -> Drawn:
    """Maps of accuracy without each head."""
    return _named(single.single_maps(_masked(results), ACCURACY, _describe(results)))


@exhibits.figure(
    "michel_classifier_transfer", needs=("classified",), beside="michel_classifier_transfer"
)
def transfer_scatter(results: Results) -> Drawn:
    """Figure 2 of classifiers: effects of heads on two test sets."""
    return _named(transfer.transfer_figure(_masked(results), ACCURACY, _describe(results)))


@exhibits.figure(
    "michel_classifier_pruning",
    needs=("classifier_profiles", "classified"),
    beside="michel_classifier_pruning",
)
def orders(results: Results) -> Drawn:
    """Figure 3 of classifiers: accuracy by order of pruning."""
    notes = (_IMPORTANCE, *_describe(results))
    return _named(curves.orders_figure([_points(results)], ACCURACY, notes))


@cache
def _masked(results: Results) -> pd.DataFrame:
    """Rows of classifier_ablation.csv that mask heads; `bleu` is accuracy in percent.

    Raises UserError for a file that lacks a test set.
    """
    files = results.files("classifier_ablation")
    table = masked_rows(_gathered(files, ABLATION), files[0], _SCRIPT)
    by_run = dict(list(table.groupby(["pair", "run", "seed"], sort=False)["test_set"]))
    for path in files:
        found = [*by_run.get(run_of(path), pd.Series(dtype=object)).unique()]
        if found != _TESTS:
            raise UserError(
                f"{path}: expected the test sets {', '.join(_TESTS)}, found "
                f"{', '.join(found) or 'none'}; run {_SCRIPT} again"
            )
    return table


def _points(results: Results) -> pd.DataFrame:
    """The points of classifier_profile.csv; see `profile_points`."""
    files = results.files("classifier_profiles")
    return pruning.profile_points(_over_all(files, pruning.PROFILE))


def _over_all(files: list[Path], columns: list[str]) -> pd.DataFrame:
    table = _gathered(files, columns)
    return table[table["scope"] == "all"].reset_index(drop=True)


def _gathered(files: list[Path], columns: list[str]) -> pd.DataFrame:
    """Rows of all files, which have `accuracy` where translation has `bleu`."""
    own = ["accuracy" if column == "bleu" else column for column in columns]
    return gather(files, own).rename(columns={"accuracy": "bleu"})


def _describe(results: Results) -> tuple[str, str]:
    """Sentences on units, models and pairs. Raises UserError for a file that counts no pairs."""
    sizes = []
    for path in results.files("classifier_facts"):
        counts = read_json(path).get("pairs", {})
        lacking = [test for test in _TESTS if test not in counts]
        if lacking:
            raise UserError(
                f"{path}: expected under 'pairs' how many each test set has, found none of "
                f"{', '.join(lacking)}; run {_SCRIPT} again"
            )
        tests = ", ".join(f"{test} ({count} pairs)" for test, count in counts.items())
        sizes.append(f"{run_of(path)[1]} on {tests}")
    scored = "; ".join(dict.fromkeys(sizes))  # the same of every seed
    return ("Accuracy in percent, changes in points.", f"Scored: {scored}.")


def _printed_all_but_one() -> pd.DataFrame:
    """The paper's rows of one head left in a layer, of which none is significant."""
    best, elsewhere = (michel.classifier_all_but_one(number) for number in (3, 6))
    table = elsewhere.merge(best, on="layer", suffixes=("", "_best"), validate="one_to_one")
    table = table.rename(columns={"value": "delta", "value_best": "dev_delta"})
    table["layer"] -= 1
    names = _PAPER | {"kind": "enc_self", "significant": 0, "heads": michel.CLASSIFIER_HEADS}
    return table.assign(**names)


def _printed_transfer() -> pd.DataFrame:
    """The paper's row of two test sets; it does not say of how many heads."""
    tests = {"other_test_set": "mismatched", "kind": "all"}
    return pd.DataFrame([_PAPER | tests | {"pearson": michel.classifier_transfer()}])


def _printed_pruning() -> pd.DataFrame:
    """The paper's row of how many heads can be pruned, MultiNLI."""
    percent = michel.classifier_prunable()["mnli"]
    layers = len(michel.classifier_all_but_one(3))  # a row each
    heads = michel.CLASSIFIER_HEADS * layers
    curve = {"scope": "all", "order": "importance", "heads": heads}
    # Rounded up, as its code does with the heads of a step.
    held = {"holds_at": ceil(heads * percent / 100), "holds_percent": percent}
    return pd.DataFrame([_PAPER | curve | held])


def _named(made: _Made) -> _Made:
    """The same with the names of columns that classifiers have."""
    names = {"pair": "corpus", "run": "model", "bleu": "accuracy"}
    if isinstance(made, Drawn):
        return replace(made, data=made.data.rename(columns=names))
    tidy, shown = (table.rename(columns=names) for table in (made.tidy, made.shown))
    return replace(made, tidy=tidy, shown=shown)
