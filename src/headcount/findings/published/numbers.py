"""Numbers that a paper prints, from its YAML file, as tidy tables."""

from functools import cache
from pathlib import Path

import pandas as pd
from pydantic import model_validator

from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Section
from headcount.findings.cells import fill_empty


class PublishedTable(Section):
    """One printed table: what its numbers are, and the names along both of its sides."""

    statistic: str
    """What each number is, such as bleu."""

    rows_are: str
    """What the rows are told apart by, such as run."""

    columns_are: list[str]
    """What the columns are told apart by."""

    columns: list[list[str]]
    """One name for each of `columns_are`, per column."""

    rows: dict[str, list[float]]
    """One number per column, for each row."""

    @model_validator(mode="after")
    def _check_shape(self) -> "PublishedTable":
        for names in self.columns:
            if len(names) != len(self.columns_are):
                raise ValueError(f"expected {len(self.columns_are)} names, found {names}")
        for name, numbers in self.rows.items():
            if len(numbers) != len(self.columns):
                raise ValueError(f"expected {len(self.columns)} numbers in row {name!r}")
        return self

    def tidy(self) -> pd.DataFrame:
        """One number a row: the names of its row and column, statistic, value."""
        axes = [self.rows_are, *self.columns_are]
        cells = [
            (row, *names, self.statistic, number)
            for row, numbers in self.rows.items()
            for names, number in zip(self.columns, numbers, strict=True)
        ]
        return pd.DataFrame(cells, columns=[*axes, "statistic", "value"])


class Published(Section):
    """The tables of one paper."""

    source: str
    """Who published them, and where."""

    metric: str
    """Which BLEU the paper prints, and who says so."""

    tables: dict[str, PublishedTable]
    """By name."""

    functions: dict[str, dict[str, dict[str, str]]] = {}
    """What heads do, in words: by pair, layer and rank, the last two from 1."""


def with_printed(ours: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Our rows of a table, then a paper's in the same columns, empty where it prints nothing.

    `source` tells ours from those of the paper.
    """
    ours = ours.assign(source="ours").astype(object)
    rows = fill_empty(printed.assign(source="paper").reindex(columns=ours.columns))
    return pd.concat([ours, rows], ignore_index=True)


def beside_ours(metric: str) -> str:
    """A sentence for captions in which printed BLEU, of that `metric`, stands beside ours."""
    return f"Our BLEU is sacreBLEU's, the paper's: {metric}. So compare differences, not values."


@cache
def read_published(path: Path) -> Published:
    """The tables in a paper's YAML file. Raises UserError for a fault in it."""
    return read_settings(path, Published)
