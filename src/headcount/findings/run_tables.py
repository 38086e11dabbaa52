"""Tables that every run has, gathered into one; the run is told by the folders."""

from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.settings.runs import BASELINE, Run, label, read_run

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
    """Settings of every run by its name, from the run.json of all pairs and seeds."""
    return {run_of(path)[1]: read_run(path) for path in files}


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


def gather(files: list[Path], columns: list[str]) -> pd.DataFrame:
    """Rows of all files, with pair, run and seed before their own columns, in the files' order.

    Raises UserError for a file that lacks one of `columns`.
    """
    frames = [pd.DataFrame(columns=[*KEYS, *columns])]
    for path in files:
        frame = read_columns(path, columns)
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


def read_columns(path: Path, columns: list[str]) -> pd.DataFrame:
    """Rows of a CSV, with all its columns. Raises UserError if it lacks one of `columns`."""
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    lacking = [column for column in columns if column not in frame.columns]
    if lacking:
        raise UserError(
            f"{path}: expected the columns {', '.join(columns)}; found none named "
            f"{', '.join(lacking)}; make the file again"
        )
    return frame
