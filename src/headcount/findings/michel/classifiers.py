"""Tables and figures of classifiers without some of their heads: accuracy in place of BLEU.

The paper's numbers of BERT that `published/michel.yaml` has are of speed, so none stands here.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.findings.figures import Drawn, use_style, write_figures
from headcount.findings.michel import lone, pruning, single
from headcount.findings.michel.classifier_files import ClassifierResults
from headcount.findings.michel.figures import orders_figure, single_figures
from headcount.findings.michel.score import ACCURACY
from headcount.findings.tables import Table, write_tables

_IMPORTANCE = (
    "Importance: size of the derivative of a pair's loss by a head's multiplier, mean over dev."
)


def write_classifier_findings(
    results: ClassifierResults, folder: Path, origin: dict[str, Any]
) -> None:
    """Write `tables/` and `figures/` below a folder, all named michel_classifier_…"""
    use_style()
    tables, figures = classifier_tables(results), classifier_figures(results)
    write_tables(tables, folder / "tables", origin)
    write_figures(figures, folder / "figures", origin)


def classifier_tables(results: ClassifierResults) -> list[Table]:
    """Single heads, all but one, transfer; then pruning by steps and its areas."""
    alone = single.single_table(results.ablation)
    kept = lone.lone_table(results.ablation)
    moved = single.transfer_table(single.transfer_points(results.ablation))
    shares, areas = pruning.pruning_table(results.points), pruning.areas_table(results.areas)
    shares_words = pruning.caption(ACCURACY, set(shares["order"]), kinds=False)
    areas_words = pruning.areas_caption(ACCURACY, kinds=False)
    tables = [
        ("ablation", alone, single.single_summary(alone), single.caption(ACCURACY)),
        ("all_but_one", kept, lone.lone_summary(kept), lone.caption(ACCURACY)),
        ("transfer", moved, single.transfer_summary(moved), single.transfer_caption(ACCURACY)),
        ("pruning", shares, pruning.pruning_summary(shares), f"{shares_words} {_IMPORTANCE}"),
        ("areas", areas, pruning.areas_summary(areas, ACCURACY), f"{areas_words} {_IMPORTANCE}"),
    ]
    setting = _setting(results)
    return [
        Table(f"michel_classifier_{name}", _named(tidy), _named(shown), f"{words} {setting}")
        for name, tidy, shown, words in tables
    ]


def classifier_figures(results: ClassifierResults) -> list[Drawn]:
    """Maps of single heads, their effects on two test sets, curves by order of pruning."""
    setting = _setting(results)
    ranked = f"{_IMPORTANCE} {setting}"
    drawn = [
        *single_figures(results.ablation, ACCURACY, setting),
        orders_figure([results.points], ACCURACY, ranked),
    ]
    return [
        replace(
            figure,
            name=figure.name.replace("michel_", "michel_classifier_"),
            data=_named(figure.data),
        )
        for figure in drawn
    ]


def _setting(results: ClassifierResults) -> str:
    """Sentences on units, models and pairs."""
    sizes = [
        f"{name} on {', '.join(f'{test} ({count} pairs)' for test, count in tests.items())}"
        for name, tests in results.scored.items()
    ]
    return f"Accuracy in percent, changes in points. Scored: {'; '.join(sizes)}."


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the columns that classifiers have."""
    kept = table.drop(columns=["run", "seed", "source"], errors="ignore")
    return kept.rename(columns={"pair": "model", "bleu": "accuracy"})
