"""The claims that `claims.yaml` lists and explains, and the files that decide them."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from math import nan
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from headcount.analysis import read_beside
from headcount.analysis.frames import BASE
from headcount.analysis.inputs import place_of
from headcount.analysis.published import headmask, michel, voita
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.runs import RUN_FILE, read_run
from headcount.base.settings.section import Section

PAPERS = {
    "HM": "Sun et al. 2020, HeadMask",
    "MI": "Michel et al. 2019",
    "VO": "Voita et al. 2019",
    "VB": "Libovický 2019, a blog on Voita et al.",
    "KI": "Kim et al. 2021, arXiv 2105.14940",
    "X": "across papers",
}
_PUBLISHED = {"HM": headmask.PAPER, "MI": michel.PAPER, "VO": voita.PAPER, "VB": voita.PAPER}
_Argument = int | float | bool | str | list[str]
_Limit = int | float | dict[str, int | float]
UNIT = ["experiment", "pair", "seed"]  # columns that identify trainings to compare
MODEL = [*UNIT, "run"]
FLOOR = 5.0  # a baseline below this BLEU on every test set decides no claim about translation


class Source(Section):
    """Rows of files that metrics read under one name."""

    file: list[str]
    columns: list[str] = []
    defaults: dict[str, int] = {}  # values of columns that older files lack
    where: str = ""
    add: dict[str, str] = {}


class Printed(Section):
    """Numbers that a paper prints, as rows of its published tables."""

    tables: list[str]
    where: str = "value == value"
    minus: str = ""
    over: str = ""
    how: Literal["values", "sum", "count"] = "values"

    def rows(self, paper: str) -> pd.DataFrame:
        """Return the rows with the numbers as column `value`."""
        table = pd.concat([_PUBLISHED[paper].table(name) for name in self.tables])
        if self.how != "values":
            return pd.DataFrame({"value": [float(table["value"].agg(self.how))]})
        rows = table.query(self.where).astype({"value": float})
        if self.minus or self.over:
            other = table.query(self.minus or self.over)["value"].to_numpy(float)
            rows["value"] = rows["value"] - other if self.minus else rows["value"] / other
        return rows.round({"value": 3})


class Needs(Section):
    """Runs that decide a claim, and the experiments of `config/` that contain them."""

    run: str
    experiments: list[str] = []
    structure: bool = False


class Rule(Section):
    """Limits for a claim's number: one for all parts of the claim, or limits of its parts."""

    compare: list[list[str]] = []
    above: _Limit | None = None
    below: _Limit | None = None
    scale: Literal["difference", "ratio", "correlation"] = "difference"
    about: Literal["model", "trainings"] = "model"
    paper: Literal["first"] | list[float] = []
    source: str = ""


class Claim(Section):
    """One claim of a paper, and the metric and test that decide it."""

    place: str
    statement: str
    statistic: str
    metric: dict[str, dict[str, _Argument]] = Field(min_length=1, max_length=1)
    test: Rule
    printed: dict[str, Printed | str | list[float]] = {}
    needs: Needs


class Ledger(Section):
    """All claims, and what they refer to."""

    rename: dict[str, str]
    methods: dict[str, str]
    reasons: dict[str, str]
    evidence: dict[str, Source]
    claims: dict[str, Claim]


@cache
def ledger() -> Ledger:
    """Return the content of `claims.yaml`."""
    return read_beside(__file__, Ledger)


def paper_of(name: str) -> str:
    """Return the key of a claim's paper in `PAPERS`."""
    return name.partition("-")[0]


def paper_value(name: str) -> float:
    """Return the paper's own value of a claim's number, with test sets of a pair averaged first."""
    claim = ledger().claims[name]
    given = next(iter(claim.printed.values())) if claim.test.paper == "first" else claim.test.paper
    if not isinstance(given, Printed):
        return float(np.mean(given)) if given else nan
    rows = given.rows(paper_of(name))
    means = rows.groupby("pair")["value"].mean() if "test_set" in rows else rows["value"]
    return float(means.mean())


def printed_line(name: str) -> str:
    """Return the paper's own numbers in one line."""
    parts = []
    for what, given in ledger().claims[name].printed.items():
        values = given.rows(paper_of(name))["value"] if isinstance(given, Printed) else given
        shown = given if isinstance(given, str) else ", ".join(f"{value:g}" for value in values)
        parts.append(f"{what}: {shown}")
    return "; ".join(parts)


class Evidence:
    """Result files of one or several experiments, by folder and name."""

    def __init__(self, files: Iterable[Path]):
        """Raise UserError if two files are the same file of the same experiment."""
        places: dict[tuple, Path] = {}
        for path in sorted(set(files)):
            if (place := place_of(path)) and (other := places.setdefault(place, path)) != path:
                raise UserError(f"{path}: found {other} too; name one folder for each experiment")
        self._files: dict[str, list[Path]] = defaultdict(list)
        for (file, *_), path in places.items():
            self._files[file].append(path)
        self.frame = cache(self._frame)
        scores = self.frame("bleu", structure=True)
        best = scores[scores["run"] == BASE].groupby(UNIT)["score"].max()
        self.untrained = list(best.index[best < FLOOR])

    def files(self, names: Iterable[str]) -> list[Path]:
        """Return the files of these sources of `claims.yaml`."""
        sources = [ledger().evidence[name] for name in names]
        paths = [path for source in sources for file in source.file for path in self._files[file]]
        return list(dict.fromkeys(paths))

    def _frame(self, name: str, structure: bool = False) -> pd.DataFrame:
        """Return our rows of a source, without untrained baselines unless `structure`."""
        source = ledger().evidence[name]
        frames = [pd.DataFrame(columns=list({*MODEL, *source.columns, *source.add}))]
        for path in self.files([name]):
            rows = _read(path)
            rows = pd.DataFrame(source.defaults, rows.index).assign(**rows)
            if lacking := set(source.columns) - set(rows):
                raise UserError(f"{path}: found no column {min(lacking)}; make the file again")
            rows = rows.query(source.where, engine="python") if source.where and len(rows) else rows
            if len(rows):
                added = {new: rows.eval(rule, engine="python") for new, rule in source.add.items()}
                frames.append(rows.assign(**added))
        rows = pd.concat(frames[1:] or frames).dropna(subset="seed").drop_duplicates()
        for pair in {"pair", "other_pair"}.intersection(() if structure else rows):
            trainings = rows[["experiment", pair, "seed"]].itertuples(index=False, name=None)
            known = [training not in self.untrained for training in trainings]
            rows = rows[pd.Series(known, rows.index, dtype=bool)]
        return rows.reset_index(drop=True)


def _read(path: Path) -> pd.DataFrame:
    """Return our rows of a file with its keys. The numbers of a JSON file are one row."""
    if path.name == RUN_FILE:
        run = read_run(path)
        own = run.model_dump(exclude_defaults=True).keys() - {"method", "heads"}
        facts = {"method": run.method, "masked": run.heads or 0, "plain": not own}
        facts |= {"alike": own <= {"dropout"}, "dropout": run.model_dump().get("dropout")}
        rows = pd.DataFrame([facts]).astype({"dropout": float})
    elif path.suffix == ".json":
        facts = read_json(path).items()
        rows = pd.DataFrame([{key: value for key, value in facts if isinstance(value, int)}])
    else:
        labels = {"function": str}
        rows = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=labels)
    if "source" in rows:  # texts among a paper's rows made columns of numbers text
        rows = rows[rows["source"] == "ours"].apply(_as_numbers)
    renamed = {old: new for old, new in ledger().rename.items() if old in rows}
    rows = rows.drop(columns=renamed.values(), errors="ignore").rename(columns=renamed)
    names = ["experiment", "pair", "run", "seed"]
    return rows.assign(**dict(zip(names, place_of(path)[1:], strict=False)))


def _as_numbers(column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if numbers.notna().equals(column.notna()) else column
