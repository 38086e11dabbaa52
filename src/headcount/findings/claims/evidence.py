"""The files that claims are decided from, of one experiment or several, by what they hold."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings.claims.verdicts import UNIT
from headcount.findings.results import BASE, KEYS, read_table, require_columns, run_of

MODEL = ["experiment", *KEYS]
"""What tells one training from another."""

TEST = [*MODEL, "test_set"]
"""What tells one model on one test set from another."""

FLOOR = 5.0
"""BLEU of a baseline below which its training decides nothing: there is nothing to lose."""

_EXHIBITS = ("tables", "figures")


class Evidence:
    """Result files by names such as `tables/bleu.csv` or, of runs, `masking/headmask.csv`.

    A table or figure lies in `<experiment>/<folder>/`, a file of a run in
    `<experiment>/<phase>/<pair>/<run>/seed<k>/`; other files are passed over.
    """

    def __init__(self, files: Iterable[Path]):
        """Raises UserError for two files that would be the same one of the same experiment."""
        self._files: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
        for path in sorted(set(files)):
            place = _place(path)
            if place:
                name, experiment = place
                known = self._files[name][experiment]
                if known and (name.startswith(_EXHIBITS) or run_of(path) in map(run_of, known)):
                    raise UserError(
                        f"{path}: expected the results of each experiment once, found "
                        f"{known[-1]} too; name one of them"
                    )
                known.append(path)
        self._read = cache(self._ours)
        self.taken: list[Path] = []
        self.compared: set[tuple] = set()
        self.untrained: set[tuple] = set()
        scores = self.baseline("tables/bleu.csv", ["metric", "score"])
        best = scores[scores["metric"] == "bleu"].groupby(UNIT)["score"].max()
        self.untrained = set(best.index[best < FLOOR])
        trained = self.rows("tables/headmask_collapse.csv", ["collapsed"])
        self.collapsed = set(_models(trained[trained["collapsed"] == "yes"]))

    def rows(self, name: str, columns: list[str]) -> pd.DataFrame:
        """Our rows of all files of this name: experiment, pair, run, seed, and the columns.

        Without those of `untrained`: experiment, pair and seed of a baseline below `FLOOR`.
        Empty without any file. Raises UserError for a file that lacks one of the columns.
        """
        frames = [pd.DataFrame(columns=[*MODEL, *columns])]
        for experiment, files in self._files[name].items():
            for path in files:
                frame = self._read(path, experiment)
                require_columns(frame, path, [*KEYS, *columns])
                frames.append(frame)
                self.taken.append(path)
        filled = [frame for frame in frames if not frame.empty]
        rows = pd.concat(filled or frames[:1], ignore_index=True)
        if not self.untrained:
            return rows
        trainings = rows[UNIT].itertuples(index=False, name=None)
        known = [training not in self.untrained for training in trainings]
        return rows[pd.Series(known, rows.index, dtype=bool)].reset_index(drop=True)

    @staticmethod
    def _ours(path: Path, experiment: str) -> pd.DataFrame:
        """All our rows of a table, a figure, or a file of a run; many claims read the same."""
        frame = read_table(path).assign(experiment=experiment)
        if path.parent.name not in _EXHIBITS:
            frame = frame.assign(**dict(zip(KEYS, run_of(path), strict=True)))
        if "source" not in frame:
            return frame
        # Words of the paper's rows made text of some columns of numbers.
        return frame[frame["source"] == "ours"].apply(_as_numbers)

    def baseline(self, name: str, columns: list[str]) -> pd.DataFrame:
        """As `rows`, of the plain training alone."""
        found = self.rows(name, columns)
        return found[found["run"] == BASE]

    def compare(self, rows: pd.DataFrame) -> pd.DataFrame:
        """These rows; their models are among `compared`, those on whose training a claim rests."""
        self.compared.update(_models(rows))
        return rows

    def facts(self, name: str, key: str) -> dict[tuple, Any]:
        """What JSON files of runs hold under `key`, by experiment, pair, run and seed."""
        found = {}
        for experiment, files in self._files[name].items():
            for path in files:
                found[(experiment, *run_of(path))] = read_json(path)[key]
                self.taken.append(path)
        return found


def _models(rows: pd.DataFrame) -> Iterable[tuple]:
    """Experiment, pair, run and seed of each row."""
    return rows[MODEL].itertuples(index=False, name=None)


def _as_numbers(column: pd.Series) -> pd.Series:
    """The column as numbers if all cells are, else as it is."""
    try:
        return pd.to_numeric(column)
    except ValueError:
        return column


def result_files(given: Path) -> list[Path]:
    """The file itself, or those in a folder of results that claims may be decided from."""
    if not given.is_dir():
        return [given]
    return sorted(path for path in given.rglob("*.*") if _place(path))


def _place(path: Path) -> tuple[str, str] | None:
    """Name and experiment of a file; nothing for one that no claim is decided from."""
    folder = path.parent
    if folder.name in _EXHIBITS and path.suffix == ".csv" and path.stem != "claims":
        return f"{folder.name}/{path.name}", folder.parent.name
    of_run = folder.name.removeprefix("seed").isdecimal() and len(path.parents) > 4
    if of_run and path.suffix in (".csv", ".json"):
        return f"{path.parents[3].name}/{path.name}", path.parents[4].name
    return None
