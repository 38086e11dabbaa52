"""The tables and pictures of kept runs, below docs/results."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.findings.results import read_table


@dataclass(frozen=True)
class Kept:
    """A folder of kept results, the page that is made of them, and the folder of experiments."""

    folder: Path
    page: Path
    config: Path

    def experiments(self) -> list[str]:
        """Those that have tables, by name."""
        return sorted(path.parent.name for path in self.folder.glob("*/tables") if path.is_dir())

    def begun(self, experiment: str) -> bool:
        """Whether any of its runs is kept, with tables."""
        return experiment in self.experiments()

    def has(self, experiment: str, name: str) -> bool:
        """Whether an experiment has this table."""
        return self._path(experiment, name).is_file()

    def table(self, experiment: str, name: str) -> pd.DataFrame:
        """Its rows. Raises UserError where it is not there."""
        path = self._path(experiment, name)
        if not path.is_file():
            raise UserError(
                f"{path}: expected the table of kept runs, found none; "
                f"python workflow/kept.py page {experiment}"
            )
        return read_table(path)

    def compared(self, experiment: str, name: str) -> pd.DataFrame:
        """As `table`, of one whose `reference` is empty in rows of means: empty text there."""
        table = self.table(experiment, name)
        return table.assign(reference=table["reference"].astype(object).fillna(""))

    def _path(self, experiment: str, name: str) -> Path:
        return self.folder / experiment / "tables" / f"{name}.csv"

    def archives(self, experiment: str) -> set[str]:
        """The runs that are kept, as `<pair>/<run>.seed<k>`."""
        found = (self.folder / experiment / "kept").glob("*/*.tar.xz")
        return {f"{path.parent.name}/{path.name.removesuffix('.tar.xz')}" for path in found}

    def settings(self, experiment: str) -> Experiment:
        """The experiment as its file has it today. Raises UserError for a fault in it."""
        return load_experiment(experiment, self.config)

    def picture(self, experiment: str, name: str) -> str:
        """Where the page finds a picture, which is copied to it; empty if there is none."""
        found = self.folder / experiment / f"{name}.png"
        if not found.is_file():
            return ""
        beside = self.page.parent / experiment / found.name
        if beside.resolve() != found.resolve():
            beside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, beside)
        return f"{experiment}/{found.name}"
