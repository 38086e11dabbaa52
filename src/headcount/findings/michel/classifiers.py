"""Tables and figures of classifiers without some of their heads: accuracy in place of BLEU.

They are made from the folders of scripts/classifier_ablation.py. What the paper prints of its BERT
on MultiNLI stands beside: one head left in a layer, the correlation of two test sets, and the share
that can be pruned.
"""

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings.figures import Drawn, use_style, write_figures
from headcount.findings.michel import curves, pruning, single, transfer
from headcount.findings.michel.measured import ABLATION, ACCURACY, masked_rows
from headcount.findings.published import michel
from headcount.findings.results import read_columns
from headcount.findings.tables import Table, write_tables

_IMPORTANCE = (
    "Importance: size of the derivative of a pair's loss by a head's multiplier, mean over dev."
)
_PAPER = {"pair": michel.CLASSIFIER, "run": "", "seed": "", "test_set": "matched"}
_SCRIPT = "scripts/classifier_ablation.py"
_TESTS = ["dev", "matched", "mismatched"]
_TABLES = {
    "classifier_ablation.csv": ABLATION,
    "classifier_profile.csv": pruning.PROFILE,
    "classifier_profile_areas.csv": pruning.AREAS,
}
_NAMES = (*_TABLES, "classifier_ablation.json")


@dataclass(frozen=True)
class ClassifierResults:
    """What was measured of some classifiers.

    In all tables `pair` is the name of a classifier's folder, `run` and `seed` are empty, and
    `bleu` is accuracy in percent. Rows over heads of one kind are left out: a classifier has no
    other, so they are those over all heads again.
    """

    ablation: pd.DataFrame  # rows of classifier_ablation.csv that mask heads
    points: pd.DataFrame  # see `profile_points`
    areas: pd.DataFrame  # rows of classifier_profile_areas.csv
    scored: dict[str, dict[str, int]]  # by classifier: pairs of each test set
    files: list[Path]  # all that was read

    @classmethod
    def read(cls, folders: list[Path]) -> "ClassifierResults":
        """Results in these folders, in their order.

        Raises UserError for two folders of one name, and for a folder that lacks a file, a column
        or a test set.
        """
        by_name = {folder.resolve().name: folder for folder in folders}
        if len(by_name) < len(folders):
            raise UserError(
                "--results: expected folders with different names, which stand for the models; "
                f"found {', '.join(map(str, folders))}; rename one"
            )
        files = [folder / name for folder in folders for name in _NAMES]
        for path in files:
            if not path.is_file():
                raise UserError(
                    f"{path.parent}: expected {path.name}, as {_SCRIPT} writes it, found no such "
                    f"file; run {_SCRIPT} with --out {path.parent}"
                )
        ablation, profile, areas = (_stacked(by_name, name) for name in _TABLES)
        scored = {name: _pairs(folder / _NAMES[-1]) for name, folder in by_name.items()}
        return cls(ablation, pruning.profile_points(profile), areas, scored, files)


def _stacked(folders: dict[str, Path], name: str) -> pd.DataFrame:
    """Rows of a file of every folder; it has `accuracy` where translation has `bleu`."""
    columns = ["accuracy" if column == "bleu" else column for column in _TABLES[name]]
    tables = []
    for model, folder in folders.items():
        table = read_columns(folder / name, columns).rename(columns={"accuracy": "bleu"})
        if "scope" in table:
            table = table[table["scope"] == "all"]
        else:
            table = _masked(table, folder / name)
        tables.append(table.assign(pair=model, run="", seed=""))
    return pd.concat(tables, ignore_index=True)


def _masked(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows that mask heads, of all test sets."""
    masked = masked_rows(table, path, _SCRIPT)
    found = list(masked["test_set"].unique())
    if found != _TESTS:
        raise UserError(
            f"{path}: expected the test sets {', '.join(_TESTS)}, found {', '.join(found)}; run "
            f"{_SCRIPT} again"
        )
    return masked


def _pairs(path: Path) -> dict[str, int]:
    sizes = read_json(path).get("pairs", {})
    lacking = [test for test in _TESTS if test not in sizes]
    if lacking:
        raise UserError(
            f"{path}: expected under 'pairs' how many each test set has, found none of "
            f"{', '.join(lacking)}; run {_SCRIPT} again"
        )
    return sizes


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
    setting = _describe(results)
    alone, none = results.ablation, pd.DataFrame()
    kept = (
        f"Rows whose source is paper: {michel.SOURCE}, Tables 3 (under on dev: best on matched "
        f"itself) and 6 (best on 5,000 training pairs, scored on matched). {setting}"
    )
    moved = f"The paper's row: {michel.SOURCE}, Figure 2, its BERT on MultiNLI. {setting}"
    shares = michel.classifier_prunable()
    gone = (
        f"{_IMPORTANCE} The paper's row: {michel.SOURCE}, its BERT on MultiNLI, of which it says "
        f"that {shares['mnli']} % can go without a noticeable loss (on SST-2 {shares['sst2']} %, "
        f"on CoLA {shares['cola']} %, on MRPC {shares['mrpc']} %); no p is printed. {setting}"
    )
    areas = f"{_IMPORTANCE} {setting}"
    tables = {
        "ablation": single.single_table(alone, none, ACCURACY, setting),
        "all_but_one": single.all_but_one_table(alone, _printed_all_but_one(), ACCURACY, kept),
        "transfer": transfer.transfer_table(alone, _printed_transfer(), ACCURACY, moved),
        "pruning": pruning.pruning_table(results.points, _printed_pruning(), ACCURACY, gone),
        "areas": pruning.areas_table(results.areas, none, ACCURACY, areas),
    }
    return {
        f"michel_classifier_{name}": Table(_renamed(made.tidy), _renamed(made.shown), made.caption)
        for name, made in tables.items()
    }


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
        "ablation": single.single_maps(results.ablation, ACCURACY, setting),
        "transfer": transfer.transfer_figure(results.ablation, ACCURACY, setting),
        "pruning": curves.orders_figure([results.points], ACCURACY, f"{_IMPORTANCE} {setting}"),
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
