"""Tables and figures of classifiers without some of their heads: accuracy in place of BLEU.

What the paper prints of its BERT on MultiNLI stands beside: one head left in a layer, the
correlation of two test sets, and the share that can be pruned.
"""

from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.findings.figures import Drawn, use_style, write_figures
from headcount.findings.michel import all_but_one, pruning, single
from headcount.findings.michel.classifier_files import ClassifierResults
from headcount.findings.michel.figures import orders_figure, single_figure, transfer_figure
from headcount.findings.michel.metric import ACCURACY
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.tables import Table, write_tables

_IMPORTANCE = (
    "Importance: size of the derivative of a pair's loss by a head's multiplier, mean over dev."
)
_PAPER = {"pair": michel.CLASSIFIER, "run": "", "seed": "", "source": "paper"}


def write_classifier_findings(
    results: ClassifierResults, folder: Path, origin: dict[str, Any]
) -> None:
    """Write `tables/` and `figures/` below a folder, all named michel_classifier_…"""
    use_style()
    write_tables(classifier_tables(results), folder / "tables", origin)
    write_figures(classifier_figures(results), folder / "figures", origin)


def classifier_tables(results: ClassifierResults) -> dict[str, Table]:
    """By name: single heads, all but one, transfer; then pruning by steps and its areas.

    Rows whose `source` is paper are of the paper's BERT; ours have ours.
    """
    alone = single.single_table(results.ablation)
    kept = with_printed(all_but_one.all_but_one_table(results.ablation), printed_all_but_one())
    points = single.transfer_points(results.ablation)
    moved = with_printed(single.transfer_table(points), printed_transfer())
    tables = [
        ("ablation", alone, single.single_summary(alone), single.caption(ACCURACY)),
        ("all_but_one", kept, all_but_one.all_but_one_summary(kept), _all_but_one_words()),
        ("transfer", moved, single.transfer_summary(moved), _transfer_words()),
        *_pruning_tables(results),
    ]
    setting = _setting(results)
    return {
        f"michel_classifier_{name}": Table(_named(tidy), _named(shown), f"{words} {setting}")
        for name, tidy, shown, words in tables
    }


def _pruning_tables(results: ClassifierResults) -> list[tuple]:
    """Name, tidy, shown and caption of steps and of areas."""
    ours = pruning.pruning_table(results.points)
    words = pruning.caption(ACCURACY, set(ours["order"]), kinds=False)
    shares = with_printed(ours, printed_pruning())
    areas = pruning.areas_table(results.areas)
    areas_shown = pruning.areas_summary(areas, ACCURACY)
    areas_words = f"{pruning.areas_caption(ACCURACY, kinds=False)} {_IMPORTANCE}"
    return [
        ("pruning", shares, pruning.pruning_summary(shares), _pruning_words(words)),
        ("areas", areas, areas_shown, areas_words),
    ]


def printed_all_but_one() -> pd.DataFrame:
    """The paper's rows of `all_but_one_table`, of which none is significant."""
    best, elsewhere = (michel.classifier_all_but_one(number) for number in (3, 6))
    table = elsewhere.merge(best, on="layer", suffixes=("", "_best"), validate="one_to_one")
    table = table.rename(columns={"value": "delta", "value_best": "dev_delta"})
    table["layer"] = table["layer"] - 1
    table = table.assign(test_set="matched", kind="enc_self", significant=0, **_PAPER)
    table = table.assign(heads=michel.CLASSIFIER_HEADS)
    return table.reindex(columns=all_but_one.COLUMNS, fill_value="").astype(object)


def printed_transfer() -> pd.DataFrame:
    """The paper's row of `transfer_table`; it does not say of how many heads."""
    tests = {"test_set": "matched", "other_test_set": "mismatched", "kind": "all"}
    row = _PAPER | tests | {"pearson": michel.classifier_transfer()}
    return _one_row(row, single.TRANSFER)


def printed_pruning() -> pd.DataFrame:
    """The paper's row of `pruning_table`, MultiNLI."""
    percent = michel.classifier_prunable()["mnli"]
    heads = michel.CLASSIFIER_HEADS * len(michel.classifier_all_but_one(3))  # a row there a layer
    curve = {"test_set": "matched", "scope": "all", "order": "importance", "heads": heads}
    # Rounded up, as its code does with the heads of a step.
    held = {"holds_at": ceil(heads * percent / 100), "holds_percent": percent}
    return _one_row(_PAPER | curve | held, pruning.COLUMNS)


def _all_but_one_words() -> str:
    return (
        f"{all_but_one.caption(ACCURACY)} Rows whose source is paper: {michel.source()}, Tables 3 "
        "(under on dev: best on matched itself) and 6 (best on 5,000 training pairs, scored on "
        "matched)."
    )


def _transfer_words() -> str:
    printed = f"The paper's row: {michel.source()}, Figure 2, its BERT on MultiNLI."
    return f"{single.transfer_caption(ACCURACY)} {printed}"


def _pruning_words(ours: str) -> str:
    """Caption of the table of steps, `ours` of our rows."""
    shares = michel.classifier_prunable()
    printed = (
        f"The paper's row: {michel.source()}, its BERT on MultiNLI, of which it says that "
        f"{shares['mnli']} % can go without a noticeable loss (on SST-2 {shares['sst2']} %, on "
        f"CoLA {shares['cola']} %, on MRPC {shares['mrpc']} %); no p is printed."
    )
    return f"{ours} {_IMPORTANCE} {printed}"


def _one_row(row: dict[str, Any], columns: list[str]) -> pd.DataFrame:
    """A table of one row, with empty cells for what is not printed."""
    return pd.DataFrame([[row.get(name, "") for name in columns]], columns=columns).astype(object)


def classifier_figures(results: ClassifierResults) -> dict[str, Drawn]:
    """By name: maps of single heads, their effects on two test sets, curves by order of pruning."""
    setting = _setting(results)
    ranked = f"{_IMPORTANCE} {setting}"
    figures = {
        "ablation": single_figure(results.ablation, ACCURACY, setting),
        "transfer": transfer_figure(results.ablation, ACCURACY, setting),
        "pruning": orders_figure([results.points], ACCURACY, ranked),
    }
    return {
        f"michel_classifier_{name}": Drawn(figure.drawing, _named(figure.data), figure.caption)
        for name, figure in figures.items()
    }


def _setting(results: ClassifierResults) -> str:
    """Sentences on units, models and pairs."""
    sizes = [
        f"{name} on {', '.join(f'{test} ({count} pairs)' for test, count in tests.items())}"
        for name, tests in results.scored.items()
    ]
    return f"Accuracy in percent, changes in points. Scored: {'; '.join(sizes)}."


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the columns that classifiers have."""
    kept = table.drop(columns=["run", "seed"], errors="ignore")
    return kept.rename(columns={"pair": "model", "bleu": "accuracy"})
