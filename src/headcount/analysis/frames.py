"""Result files as tidy frames, and the functions that make outputs from them."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from headcount.analysis.inputs import BLEU, INPUTS, Input
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.runs import Run, read_run
from headcount.base.settings.section import Section
from headcount.base.settings.training_runs import BASELINE

BASE = BASELINE.label  # name of the run that all others are compared with
RUN = ["pair", "run", "seed"]  # columns that identify one training run
HEAD = ["kind", "layer", "head"]  # columns that identify a head of a model


Settings = Mapping[str, Any]  # sections of an experiment's settings by name
Facts = list[dict[str, Any]]  # content of the JSON files of one kind, with pair, run and seed


class Runs(dict[str, Run]):
    """Settings of runs by name. A name without settings is a UserError."""

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

    def __init__(
        self, files: Mapping[str, list[Path]], settings: Mapping[str, Section], metric: str = BLEU
    ):
        """`metric`: of the files of scores."""
        self._files, self.settings, self.metric = files, settings, metric
        self._results: dict[Any, Any] = {}

    def files(self, kind: str) -> list[Path]:
        """Return the files of one kind, in the order of pairs, runs and seeds."""
        return self._files.get(kind, [])

    def load(self, kind: str) -> Any:
        """Return the content of all files of one kind: a frame, `Runs`, lists of JSON, or paths."""
        if kind not in self._results:
            self._results[kind] = _read(INPUTS[kind], self.metric, self.files(kind))
        return self._results[kind]

    def call(self, function: Callable, given: Mapping[str, Any] | None = None) -> Any:
        """Return what a function makes of the arguments that its parameters name.

        A parameter is one of `given`, a kind of `INPUTS`, `settings`, `data`, `metric`, or
        annotated with the function that makes its value. Calls without anything given are made
        once.
        """
        arguments = {k: value for k, value in (given or {}).items() if k in _parameters(function)}
        once = not arguments
        if once and function in self._results:
            return self._results[function]
        own = {"settings": self.settings, "data": self, "metric": self.metric}
        for name, (default, maker) in _parameters(function).items():
            if name in arguments:
                continue
            if maker:
                arguments[name] = self.call(maker)
            elif name in INPUTS or name in own:
                arguments[name] = self.load(name) if name in INPUTS else own[name]
            elif default is inspect.Parameter.empty:
                raise TypeError(f"{function.__qualname__}: nothing provides the argument {name!r}")
        result = function(**arguments)
        return self._results.setdefault(function, result) if once else result


@cache
def _parameters(function: Callable) -> dict[str, tuple[Any, Callable | None]]:
    """Return default and maker of every parameter, by its name."""
    return {
        name: (item.default, getattr(item.annotation, "__metadata__", [None])[0])
        for name, item in inspect.signature(function).parameters.items()
    }


def run_of(path: Path) -> tuple[str, str, int]:
    """Return pair, run and seed of a file below `<pair>/<run>/seed<k>/`."""
    for folder in path.parents:
        number = folder.name.removeprefix("seed")
        if number != folder.name and number.isdecimal():
            return folder.parent.parent.name, folder.parent.name, int(number)
    raise UserError(f"{path}: expected a file of a run, below <pair>/<run>/seed<k>/")


def _read(given: Input, metric: str, paths: list[Path]) -> Any:
    ends = {Path(name).suffix for name in given.names}
    if given.names == ("run.json",):
        return read_runs(paths)
    if given.folder in ("text", "bpe") or not ends <= {".csv", ".json"}:
        return paths
    if ends == {".json"}:
        return [dict(zip(RUN, run_of(path), strict=True)) | read_json(path) for path in paths]
    given = given.of(metric)
    frame = read_csv(paths, given.columns, given.rows)
    names = {given.metric: "score"}
    return frame.rename(columns=names).assign(metric=given.metric) if given.metric else frame


def read_runs(paths: list[Path]) -> Runs:
    """Return the settings of every run by its name, from the `run.json` of all pairs and seeds."""
    runs = Runs()
    for path in paths:
        name, run = run_of(path)[1], read_run(path)
        if run.label != name:
            raise UserError(f"{path}: expected the run {name}, found {run.label}; make it again")
        runs[name] = run
    return runs


def read_csv(paths: list[Path], columns: tuple[str, ...] = (), rows: str = "") -> pd.DataFrame:
    """Return the rows of all files, with pair, run and seed before the columns of the files."""
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
        cells = frame[column].astype(str).where(frame[column].notna(), "")  # empty cells may be
        bad = cells.str.fullmatch(r"[+-]?(nan|inf|infinity)", case=False)
        if bad.any():
            raise UserError(
                f"{path}:{int(bad.to_numpy().argmax()) + 2}: column {column!r}: expected a finite "
                f"number, found {frame.loc[bad, column].iloc[0]}; look for the run that produced it"
            )


def with_paper(ours: pd.DataFrame, paper: pd.DataFrame, metric: str = BLEU) -> pd.DataFrame:
    """Return our rows, then the paper's (BLEU alone), with the column `source`."""
    paper = paper if metric == BLEU else paper[:0]
    columns = [*ours.columns.drop("source", errors="ignore"), "source"]
    parts = [ours.assign(source="ours"), paper.assign(source="paper").reindex(columns=columns)]
    parts = [part.dropna(axis="columns", how="all") for part in parts if len(part)]
    parts = parts or [ours]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns)


def refuse(rows: pd.DataFrame, text: str) -> None:
    """Raise UserError about the first of these rows, if there are any."""
    if len(rows):
        raise UserError(text.format(**rows.iloc[0]))


def grouped(frame: pd.DataFrame, columns: list[str]) -> Any:
    """Return `groupby` in order of appearance, with rows whose key is missing."""
    return frame.groupby(columns, sort=False, dropna=False)
