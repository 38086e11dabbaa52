"""The result files that decide claims, as tidy frames."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pandas as pd

from headcount.analysis.claims.claims import ledger
from headcount.analysis.frames import BASE
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.runs import RUN_FILE, read_run

UNIT = ["experiment", "pair", "seed"]  # columns that identify trainings to compare
MODEL = [*UNIT, "run"]
FLOOR = 5.0  # a baseline below this BLEU on every test set decides no claim about translation


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
            if lacking := set(source.columns) - set(rows):
                raise UserError(f"{path}: found no column {min(lacking)}; make the file again")
            rows = rows.query(source.where, engine="python") if source.where and len(rows) else rows
            if len(rows):
                added = {new: rows.eval(rule, engine="python") for new, rule in source.add.items()}
                frames.append(rows.assign(**added))
        rows = pd.concat(frames[1:] or frames).dropna(subset="seed").drop_duplicates()
        trainings = rows[UNIT].itertuples(index=False, name=None)
        known = [structure or training not in self.untrained for training in trainings]
        return rows[pd.Series(known, rows.index, dtype=bool)].reset_index(drop=True)


def place_of(path: Path) -> tuple | None:
    """Return folder and name of a file that may decide claims, its experiment, and its run.

    It is `<experiment>/<folder>/<name>`, or `<experiment>/<folder>/<pair>/<run>/seed<k>/<name>`.
    """
    folders, seed = path.parts[:-1], path.parent.name.removeprefix("seed")
    if seed.isdecimal() and len(folders) > 4 and path.suffix in (".csv", ".json"):
        return f"{folders[-4]}/{path.name}", folders[-5], *folders[-3:-1], int(seed)
    is_data = path.suffix == ".csv" and path.stem != "claims"
    if path.parent.name in ("tables", "figures") and is_data:
        return f"{folders[-1]}/{path.name}", folders[-2]
    return None


def result_files(given: Path) -> list[Path]:
    """Return the file itself, or the files in a folder that claims are decided from."""
    return sorted(filter(place_of, given.rglob("*.*"))) if given.is_dir() else [given]


def _read(path: Path) -> pd.DataFrame:
    """Return our rows of a file with its keys. The numbers of a JSON file are one row."""
    if path.name == RUN_FILE:
        run = read_run(path)
        plain = {"method", "heads"}.issuperset(run.model_dump(exclude_defaults=True))
        rows = pd.DataFrame([{"method": run.method, "masked": run.heads or 0, "plain": plain}])
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
