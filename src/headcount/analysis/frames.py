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

BASE = label(BASELINE)  # name of the run that all others are compared with
RUN = ["pair", "run", "seed"]  # columns that identify one training run
HEAD = ["kind", "layer", "head"]  # columns that identify a head of a model


Settings = Mapping[str, Any]  # sections of an experiment's settings by name
Facts = list[dict[str, Any]]  # content of the JSON files of one kind, with pair, run and seed


class Runs(dict[str, Run]):
    """Settings of runs by name; a name without settings is a UserError."""

    def __missing__(self, name: str) -> Run:
        raise UserError(
            f"run.json: expected the settings of run {name}, found those of "
            f"{', '.join(self) or 'no run'}; give the run.json of every run"
        )


class FrameOf:
    """`FrameOf[function]` annotates a parameter that is what another function makes."""

    def __class_getitem__(cls, function: Callable) -> Any:
        """Return the annotation that `Data.call` reads."""
        return Annotated[pd.DataFrame, function]


class Data:
    """Files of one experiment by kind, see `INPUTS`, and sections of its settings by name."""

    def __init__(self, files: Mapping[str, list[Path]], settings: Mapping[str, Section]):
        self._files, self.settings = files, settings
        self._results: dict[Any, Any] = {}

    def files(self, kind: str) -> list[Path]:
        """Return the files of one kind, in the order of pairs, runs and seeds."""
        return self._files.get(kind, [])

    def load(self, kind: str) -> Any:
        """Return the content of all files of one kind; they are read once.

        CSV files make one frame, `run.json` files a mapping from names of runs to their settings,
        other JSON files a list of mappings with pair, run and seed. Other files stay paths.
        """
        if kind not in self._results:
            self._results[kind] = _read(kind, self.files(kind))
        return self._results[kind]

    def call(self, function: Callable, given: Mapping[str, Any] | None = None) -> Any:
        """Return what a function makes of the arguments that its parameters name.

        A parameter is one of `given`, a kind of `INPUTS`, `settings`, `data`, or annotated with
        the function that makes its value. Calls without anything given are made once.
        """
        own = {k: value for k, value in (given or {}).items() if k in _parameters(function)}
        if own:
            return function(**self._arguments(function, own))
        if function not in self._results:
            self._results[function] = function(**self._arguments(function, {}))
        return self._results[function]

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
    given = INPUTS[kind]
    ends = {Path(name).suffix for name in given.names}
    if given.names == ("run.json",):
        return read_runs(paths)
    if given.folder in ("text", "bpe") or not ends <= {".csv", ".json"}:
        return paths
    if ends == {".json"}:
        return [dict(zip(RUN, run_of(path), strict=True)) | read_json(path) for path in paths]
    frame = read_csv(paths, given.columns, given.rows)
    names, metric = {given.metric: "score"}, given.metric
    return frame.rename(columns=names).assign(metric=metric) if metric else frame


def read_runs(paths: list[Path]) -> Runs:
    """Return the settings of every run by its name, from the `run.json` of all pairs and seeds.

    Raises UserError for a file whose folder has the name of another run.
    """
    runs = Runs()
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
        _check(frame, path, columns)
        if rows and frame.query(rows).empty:
            raise UserError(f"{path}: expected rows with {rows}, found none; make the file again")
        pair, run, seed = run_of(path)
        frame = frame.drop(columns=[name for name in RUN if name in frame])
        frames.append(frame.assign(pair=pair, run=run, seed=seed)[[*RUN, *frame.columns]])
    filled = [frame for frame in frames if not frame.empty]
    if not filled:
        return frames[0] if frames else pd.DataFrame(columns=[*RUN, *columns])
    return pd.concat(filled, ignore_index=True)


def _check(frame: pd.DataFrame, path: Path, columns: tuple[str, ...]) -> None:
    """Raise UserError without one of `columns`, and for a number that is not finite."""
    if missing := [name for name in columns if name not in frame.columns]:
        raise UserError(
            f"{path}: expected the columns {', '.join(columns)}; found none named "
            f"{', '.join(missing)}; make the file again"
        )
    for column in frame:
        bad = frame[column].astype(str).str.fullmatch(r"[+-]?(nan|inf|infinity)", case=False)
        bad &= frame[column].notna()  # an empty cell is a missing value
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


def refuse(rows: pd.DataFrame, text: str) -> None:
    """Raise UserError about the first of these rows, if there are any."""
    if len(rows):
        raise UserError(text.format(**rows.iloc[0]))


def grouped(frame: pd.DataFrame, columns: list[str]) -> Any:
    """Return `groupby` in order of appearance, with rows whose key is missing."""
    return frame.groupby(columns, sort=False, dropna=False)
