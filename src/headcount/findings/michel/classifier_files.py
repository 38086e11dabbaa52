"""Folders of scripts/classifier_ablation.py, read for the tables and figures of translation."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings.michel.measured import ABLATION, masked_rows
from headcount.findings.michel.pruning import AREAS, PROFILE, profile_points
from headcount.findings.run_tables import read_columns

_SCRIPT = "scripts/classifier_ablation.py"
_TESTS = ["dev", "matched", "mismatched"]
_TABLES = {
    "classifier_ablation.csv": ABLATION,
    "classifier_profile.csv": PROFILE,
    "classifier_profile_areas.csv": AREAS,
}
NAMES = (*_TABLES, "classifier_ablation.json")


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
        files = [folder / name for folder in folders for name in NAMES]
        for path in files:
            if not path.is_file():
                raise UserError(
                    f"{path.parent}: expected {path.name}, as {_SCRIPT} writes it, found no such "
                    f"file; run {_SCRIPT} with --out {path.parent}"
                )
        ablation, profile, areas = (_stacked(by_name, name) for name in _TABLES)
        scored = {name: _pairs(folder / NAMES[-1]) for name, folder in by_name.items()}
        return cls(ablation, profile_points(profile), areas, scored, files)


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
