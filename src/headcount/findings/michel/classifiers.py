"""Tables and figures of classifiers without some of their heads: accuracy in place of BLEU.

What the paper prints of its BERT on MultiNLI stands beside: one head left in a layer, the
correlation of two test sets, and the share that can be pruned.
"""

from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.findings.figures import Drawn, use_style, write_figures
from headcount.findings.michel.all_but_one import all_but_one_table
from headcount.findings.michel.classifier_files import ClassifierResults
from headcount.findings.michel.curves import orders_figure
from headcount.findings.michel.measured import ACCURACY
from headcount.findings.michel.pruning import areas_table, pruning_table
from headcount.findings.michel.single import single_maps, single_table
from headcount.findings.michel.transfer import transfer_figure, transfer_table
from headcount.findings.published import michel
from headcount.findings.tables import Table, write_tables

_IMPORTANCE = (
    "Importance: size of the derivative of a pair's loss by a head's multiplier, mean over dev."
)
_PAPER = {"pair": michel.CLASSIFIER, "run": "", "seed": "", "test_set": "matched"}


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
    kept = (
        f"Rows whose source is paper: {michel.SOURCE}, Tables 3 (under on dev: best on matched "
        "itself) and 6 (best on 5,000 training pairs, scored on matched)."
    )
    moved = f"The paper's row: {michel.SOURCE}, Figure 2, its BERT on MultiNLI."
    shares = michel.classifier_prunable()
    pruned = (
        f"{_IMPORTANCE} The paper's row: {michel.SOURCE}, its BERT on MultiNLI, of which it says "
        f"that {shares['mnli']} % can go without a noticeable loss (on SST-2 {shares['sst2']} %, "
        f"on CoLA {shares['cola']} %, on MRPC {shares['mrpc']} %); no p is printed."
    )
    made = {
        "ablation": (single_table, results.ablation, pd.DataFrame(), ""),
        "all_but_one": (all_but_one_table, results.ablation, _printed_all_but_one(), f"{kept} "),
        "transfer": (transfer_table, results.ablation, _printed_transfer(), f"{moved} "),
        "pruning": (pruning_table, results.points, _printed_pruning(), f"{pruned} "),
        "areas": (areas_table, results.areas, pd.DataFrame(), f"{_IMPORTANCE} "),
    }
    setting = _describe(results)
    found = {}
    for name, (tabulate, measured, printed, words) in made.items():
        table = tabulate(measured, printed, ACCURACY, f"{words}{setting}")
        tidy, shown = _renamed(table.tidy), _renamed(table.shown)
        found[f"michel_classifier_{name}"] = Table(tidy, shown, table.caption)
    return found


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
    heads = michel.CLASSIFIER_HEADS * len(michel.classifier_all_but_one(3))  # a row there a layer
    curve = {"scope": "all", "order": "importance", "heads": heads}
    # Rounded up, as its code does with the heads of a step.
    held = {"holds_at": ceil(heads * percent / 100), "holds_percent": percent}
    return pd.DataFrame([_PAPER | curve | held])


def classifier_figures(results: ClassifierResults) -> dict[str, Drawn]:
    """By name: maps of single heads, their effects on two test sets, curves by order of pruning."""
    setting = _describe(results)
    figures = {
        "ablation": single_maps(results.ablation, ACCURACY, setting),
        "transfer": transfer_figure(results.ablation, ACCURACY, setting),
        "pruning": orders_figure([results.points], ACCURACY, f"{_IMPORTANCE} {setting}"),
    }
    return {
        f"michel_classifier_{name}": Drawn(figure.drawing, _renamed(figure.data), figure.caption)
        for name, figure in figures.items()
    }


def _describe(results: ClassifierResults) -> str:
    """Sentences on units, models and pairs."""
    sizes = [
        f"{name} on {', '.join(f'{test} ({count} pairs)' for test, count in tests.items())}"
        for name, tests in results.scored.items()
    ]
    return f"Accuracy in percent, changes in points. Scored: {'; '.join(sizes)}."


def _renamed(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the columns that classifiers have."""
    kept = table.drop(columns=["run", "seed"], errors="ignore")
    return kept.rename(columns={"pair": "model", "bleu": "accuracy"})
