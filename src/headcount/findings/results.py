"""The result files that a chapter is made from, and the tables that every run has."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.run_file import read_run
from headcount.base.settings.runs import RANDOM_WEIGHTS, PrunedSettings, Run, label
from headcount.base.settings.section import Section
from headcount.base.settings.training_runs import BASELINE, RunSettings

BASE = label(BASELINE)
KEYS = ["pair", "run", "seed"]
HEAD = ["kind", "layer", "head"]
_CURVE = ["step", "train_loss", "dev_loss", "seconds"]


def run_of(path: Path) -> tuple[str, str, int]:
    """Pair, run and seed of a file below `…/<pair>/<run>/seed<k>/`. Raises UserError for another.

    The file may lie in a folder of its own there, as translations do.
    """
    for folder in path.parents:
        number = folder.name.removeprefix("seed")
        if number != folder.name and number.isdecimal():
            return folder.parent.parent.name, folder.parent.name, int(number)
    raise UserError(f"{path}: expected a file of a run, below <pair>/<run>/seed<k>/")


def read_runs(files: list[Path]) -> dict[str, Run]:
    """Settings of every run by its name, from the run.json of all pairs and seeds.

    Raises UserError for one whose folder has the name of another run.
    """
    runs = {}
    for path in files:
        name, run = run_of(path)[1], read_run(path)
        if label(run) != name:
            raise UserError(f"{path}: expected the run {name}, found {label(run)}; make it again")
        runs[name] = run
    return runs


def read_runs_of(files: list[Path], runs: list[Path]) -> dict[str, Run]:
    """As `read_runs`. Raises UserError if one of `files` is of a run without a run.json."""
    known = read_runs(runs)
    for path in files:
        if run_of(path)[1] not in known:
            raise UserError(
                f"{path}: expected the run.json of its run too, found that of "
                f"{', '.join(known) or 'none'}; give both files"
            )
    return known


def at_start(rows: pd.DataFrame, runs: "pd.Series[PrunedSettings]") -> pd.DataFrame:
    """Rows of pruned runs as rows of the models that these began with; of no model, none.

    `runs` has the settings of each row's run, by the rows' index.
    """
    moved = rows.assign(run=[run.start for run in runs[rows.index]])
    return moved[moved["run"] != RANDOM_WEIGHTS]


def gather(files: list[Path], columns: list[str]) -> pd.DataFrame:
    """Rows of all files, with pair, run and seed before their own columns, in the files' order.

    Raises UserError for a file that lacks one of `columns`.
    """
    frames = [pd.DataFrame(columns=[*KEYS, *columns])]
    for path in files:
        frame = read_table(path)
        require_columns(frame, path, columns)
        for key, value in zip(reversed(KEYS), reversed(run_of(path)), strict=True):
            frame.insert(0, key, value)
        frames.append(frame)
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled or frames[:1], ignore_index=True)


def curve_table(files: list[Path]) -> pd.DataFrame:
    """Curves of all runs, a validation a row: pair, run, seed, then a curve's own columns.

    Files are `…/<pair>/<run>/seed<k>/curves.csv`. Raises UserError for one that holds no row.
    """
    table = gather(files, _CURVE)
    check_runs(files, table, "a row per validation, found none; train again")
    return table


def check_runs(files: list[Path], rows: pd.DataFrame, expected: str) -> None:
    """Raises UserError for a file of whose run there is no row: what was expected."""
    found = set(rows[KEYS].itertuples(index=False, name=None))
    for path in files:
        if run_of(path) not in found:
            raise UserError(f"{path}: expected {expected}")


def read_table(path: Path) -> pd.DataFrame:
    """Rows of a CSV, with all its columns."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def require_columns(frame: pd.DataFrame, path: Path, columns: list[str]) -> None:
    """Raise UserError if the rows of a file lack one of `columns`."""
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        raise UserError(
            f"{path}: expected the columns {', '.join(columns)}; found none named "
            f"{', '.join(lacking)}; make the file again"
        )


_Read = TypeVar("_Read")


class Results:
    """Files of one experiment by kind, see `INPUTS`, and sections of its settings by name.

    Files of a run lie below `<pair>/<run>/seed<k>/`.
    """

    def __init__(self, files: Mapping[str, list[Path]], settings: Mapping[str, Section]):
        self._files = files
        self.settings = settings
        self.read = cache(self._read)

    def files(self, kind: str) -> list[Path]:
        """Files of one kind, in the order of pairs, runs and seeds; there may be none.

        Raises KeyError for a kind that no exhibit of the chapter declares.
        """
        return self._files[kind]

    def _read(self, reader: Callable[[list[Path]], _Read], kind: str) -> _Read:
        """What a reader makes of all files of one kind; they are read once."""
        return reader(self.files(kind))

    @property
    def runs(self) -> dict[str, RunSettings]:
        """Settings of the training runs, by their names."""
        return self.read(read_runs, "trained_runs")

    @property
    def model(self) -> ExperimentModel:
        """Settings of the models, and whether they are imported."""
        return self.settings["model"]

    @property
    def ranking(self) -> ImportanceSettings:
        """How the importance of heads was measured."""
        return self.settings["importance"]
