"""Result files as tidy frames, and the functions that make outputs from them."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pandas as pd

from headcount.analysis.inputs import INPUTS
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.runs import Run, label, read_run
from headcount.base.settings.section import Section
from headcount.base.settings.training_runs import BASELINE

BASE = label(BASELINE)
"""Name of the run that all others are compared with."""

RUN = ["pair", "run", "seed"]
"""Columns that identify one training run."""

HEAD = ["kind", "layer", "head"]
"""Columns that identify a head of a model."""


class Data:
    """Files of one experiment by kind, see `INPUTS`, and sections of its settings by name."""

    def __init__(self, files: Mapping[str, list[Path]], settings: Mapping[str, Section]):
        self._files, self.settings = files, settings
        self._results: dict[tuple, Any] = {}

    def files(self, kind: str) -> list[Path]:
        """Return the files of one kind, in the order of pairs, runs and seeds."""
        return self._files.get(kind, [])

    def load(self, kind: str) -> Any:
        """Return the content of all files of one kind; they are read once.

        CSV files make one frame, `run.json` files a mapping from names of runs to their settings,
        other JSON files a list of mappings with pair, run and seed. Other files stay paths.
        """
        key = ("file", kind)
        if key not in self._results:
            self._results[key] = _read(kind, self.files(kind))
        return self._results[key]

    def call(self, function: Callable, given: Mapping[str, Any] | None = None) -> Any:
        """Return what a function makes of the arguments that its parameters name.

        A parameter is one of `given`, a kind of `INPUTS`, `settings`, `data`, or annotated with
        the function that makes its value. Equal calls are made once.
        """
        given = given or {}
        own = {name: value for name, value in given.items() if name in _parameters(function)}
        key = (function, repr(sorted(own.items())) if own else "")
        if not _is_simple(own) or key not in self._results:
            self._results[key] = function(**self._arguments(function, own))
        return self._results[key]

    def _arguments(self, function: Callable, given: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {}
        for name, (default, maker) in _parameters(function).items():
            if name in given:
                arguments[name] = given[name]
            elif maker is not None:
                arguments[name] = self.call(maker)
            elif name in INPUTS:
                arguments[name] = self.load(name)
            elif name in ("settings", "data"):
                arguments[name] = self.settings if name == "settings" else self
            elif default is inspect.Parameter.empty:
                raise TypeError(f"{function.__qualname__}: nothing provides the argument {name!r}")
        return arguments


def _is_simple(given: Mapping[str, Any]) -> bool:
    return all(isinstance(value, bool | int | float | str | list) for value in given.values())


@cache
def _parameters(function: Callable) -> dict[str, tuple[Any, Callable | None]]:
    """Return default and maker of every parameter, by its name."""
    hints = get_type_hints(function, include_extras=True)
    makers = {
        name: get_args(hint)[1] if get_origin(hint) is Annotated else None
        for name, hint in hints.items()
    }
    parameters = inspect.signature(function).parameters.values()
    return {item.name: (item.default, makers.get(item.name)) for item in parameters}


def run_of(path: Path) -> tuple[str, str, int]:
    """Return pair, run and seed of a file below `<pair>/<run>/seed<k>/`.

    Raises UserError for a file that lies elsewhere.
    """
    for folder in path.parents:
        number = folder.name.removeprefix("seed")
        if number != folder.name and number.isdecimal():
            return folder.parent.parent.name, folder.parent.name, int(number)
    raise UserError(f"{path}: expected a file of a run, below <pair>/<run>/seed<k>/")


def _read(kind: str, paths: list[Path]) -> Any:
    names = INPUTS[kind].names
    if INPUTS[kind].folder in ("text", "bpe"):
        return paths
    if names == ("run.json",):
        return read_runs(paths)
    if all(name.endswith(".csv") for name in names):
        frame = read_csv(paths, INPUTS[kind].columns, INPUTS[kind].rows)
        metric = INPUTS[kind].metric
        return frame.rename(columns={metric: "score"}).assign(metric=metric) if metric else frame
    if not all(name.endswith(".json") for name in names):
        return paths
    return [dict(zip(RUN, run_of(path), strict=True)) | read_json(path) for path in paths]


def read_runs(paths: list[Path]) -> dict[str, Run]:
    """Return the settings of every run by its name, from the `run.json` of all pairs and seeds.

    Raises UserError for a file whose folder has the name of another run.
    """
    runs = {}
    for path in paths:
        name, run = run_of(path)[1], read_run(path)
        if label(run) != name:
            raise UserError(f"{path}: expected the run {name}, found {label(run)}; make it again")
        runs[name] = run
    return runs


def read_csv(paths: list[Path], columns: tuple[str, ...] = (), rows: str = "") -> pd.DataFrame:
    """Return the rows of all files, with pair, run and seed before the columns of the files.

    Raises UserError for a file that lacks one of `columns`, or any row that the query `rows` takes.
    """
    frames = []
    for path in paths:
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
        _check_columns(frame, path, columns)
        _check_numbers(frame, path)
        if rows and frame.query(rows).empty:
            raise UserError(f"{path}: expected rows with {rows}, found none; make the file again")
        pair, run, seed = run_of(path)
        frame = frame.drop(columns=[name for name in RUN if name in frame])
        frames.append(frame.assign(pair=pair, run=run, seed=seed)[[*RUN, *frame.columns]])
    filled = [frame for frame in frames if not frame.empty]
    if not filled:
        return frames[0] if frames else pd.DataFrame(columns=[*RUN, *columns])
    return pd.concat(filled, ignore_index=True)


def _check_columns(frame: pd.DataFrame, path: Path, columns: tuple[str, ...]) -> None:
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise UserError(
            f"{path}: expected the columns {', '.join(columns)}; found none named "
            f"{', '.join(missing)}; make the file again"
        )


def _check_numbers(frame: pd.DataFrame, path: Path) -> None:
    """Raise UserError for a number that is not finite. An empty cell is a missing value."""
    for column in frame:
        bad = frame[column].astype(str).str.fullmatch(r"[+-]?(nan|inf|infinity)", case=False)
        bad &= frame[column].notna()
        if bad.any():
            raise UserError(
                f"{path}:{int(bad.to_numpy().argmax()) + 2}: column {column!r}: expected a finite "
                f"number, found {frame.loc[bad, column].iloc[0]}; look for the run that produced it"
            )


def with_paper(ours: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Return our rows, then the paper's in the same columns, with the column `source`."""
    columns = [*ours.columns.drop("source", errors="ignore"), "source"]
    parts = [ours.assign(source="ours"), paper.assign(source="paper").reindex(columns=columns)]
    parts = [part.dropna(axis="columns", how="all") for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns)


def grouped(frame: pd.DataFrame, columns: list[str]) -> Any:
    """Return `groupby` in order of appearance, with rows whose key is missing."""
    return frame.groupby(columns, sort=False, dropna=False)
