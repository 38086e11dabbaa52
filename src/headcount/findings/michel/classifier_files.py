"""Folders of scripts/classifier_ablation.py, read for the tables and figures of translation."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings.michel.pruning import AREAS, profile_points
from headcount.findings.michel.pruning import READ as PROFILE
from headcount.findings.michel.single import READ as ABLATION
from headcount.findings.michel.single import masked_rows
from headcount.findings.run_tables import read_columns

_SCRIPT = "scripts/classifier_ablation.py"
_TESTS = ["dev", "matched", "mismatched"]
NAMES = ("classifier_ablation.csv", "classifier_ablation.json", "classifier_profile.csv")
NAMES += ("classifier_profile_areas.csv",)


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
        by_name = _named(folders)
        files = [_present(folder / name) for folder in folders for name in NAMES]
        ablation = {name: _ablation(folder) for name, folder in by_name.items()}
        profiles, areas = (
            {name: _whole(folder / file, columns) for name, folder in by_name.items()}
            for file, columns in ((NAMES[2], PROFILE), (NAMES[3], AREAS))
        )
        points = profile_points(_stacked(profiles))
        scored = {name: _pairs(folder / NAMES[1]) for name, folder in by_name.items()}
        return cls(_stacked(ablation), points, _stacked(areas), scored, files)


def _named(folders: list[Path]) -> dict[str, Path]:
    by_name = {folder.resolve().name: folder for folder in folders}
    if len(by_name) < len(folders):
        found = ", ".join(map(str, folders))
        raise UserError(
            f"--results: expected folders with different names, which stand for the models; found "
            f"{found}; rename one"
        )
    return by_name


def _present(path: Path) -> Path:
    if not path.is_file():
        raise UserError(
            f"{path.parent}: expected {path.name}, as {_SCRIPT} writes it, found no such file; "
            f"run {_SCRIPT} with --out {path.parent}"
        )
    return path


def _ablation(folder: Path) -> pd.DataFrame:
    path = folder / NAMES[0]
    table = masked_rows(_scores(path, ABLATION), path, _SCRIPT)
    found = list(table["test_set"].unique())
    if found != _TESTS:
        raise UserError(
            f"{path}: expected the test sets {', '.join(_TESTS)}, found {', '.join(found)}; run "
            f"{_SCRIPT} again"
        )
    return table


def _whole(path: Path, columns: list[str]) -> pd.DataFrame:
    """The rows over all heads."""
    table = _scores(path, columns)
    return table[table["scope"] == "all"]


def _scores(path: Path, columns: list[str]) -> pd.DataFrame:
    """Rows of a file, which has `accuracy` where `columns` have `bleu`."""
    asked = ["accuracy" if column == "bleu" else column for column in columns]
    return read_columns(path, asked).rename(columns={"accuracy": "bleu"})


def _pairs(path: Path) -> dict[str, int]:
    sizes = read_json(path).get("pairs", {})
    lacking = [test for test in _TESTS if test not in sizes]
    if lacking:
        raise UserError(
            f"{path}: expected under 'pairs' how many each test set has, found none of "
            f"{', '.join(lacking)}; run {_SCRIPT} again"
        )
    return sizes


def _stacked(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    named = [table.assign(pair=name, run="", seed="") for name, table in tables.items()]
    return pd.concat(named, ignore_index=True)
