"""Numbers that a paper prints, from its YAML file, as tidy tables."""

from typing import Annotated

import pandas as pd
from pydantic import BeforeValidator, Field

from headcount.base.settings.section import Section

_Whole = Annotated[int, Field(strict=False)]  # keys are text
# Of a row or column; a whole number where it reads as one.
Name = Annotated[_Whole | str, Field(union_mode="left_to_right")]

_Names = BeforeValidator(lambda names: names if isinstance(names, list) else [names])


class PublishedTable(Section):
    """One printed table, with the names along both of its sides."""

    rows_are: str  # the column for the names of rows, such as run
    columns_are: Annotated[list[str], _Names]  # the columns for the names of columns
    columns: list[Annotated[list[Name], _Names]]  # names of every column, as many as `columns_are`
    same: dict[str, Name] = {}  # further names that all numbers share
    rows: dict[Name, list[int | float | None]]  # a number for every column; null if there is none

    def tidy(self) -> pd.DataFrame:
        """Return one number a row: the names of its row and column, value."""
        cells = [
            (row, *names, number)
            for row, numbers in self.rows.items()
            for names, number in zip(self.columns, numbers, strict=True)
            if number is not None
        ]
        columns = [self.rows_are, *self.columns_are, "value"]
        return pd.DataFrame(cells, columns=columns).assign(**self.same)


class Published(Section):
    """The tables of one paper."""

    source: str  # authors, year and archive number
    metric: str  # which BLEU the paper prints, and who says so
    tables: dict[str, PublishedTable]
    functions: dict[str, dict[Name, dict[Name, str]]] = {}  # of heads: by pair, layer and rank

    def table(self, name: str, value: str = "value") -> pd.DataFrame:
        """Return the numbers of the tables `name` and `name_…`, one a row in the column `value`."""
        named = [key for key in self.tables if key == name or key.startswith(f"{name}_")]
        tables = pd.concat([self.tables[key].tidy() for key in named], ignore_index=True)
        return tables.rename(columns={"value": value})
