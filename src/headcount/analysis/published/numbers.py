"""Numbers that a paper prints, from its YAML file, as tidy tables."""

from typing import Annotated

import pandas as pd
from pydantic import BeforeValidator, Field, model_validator

from headcount.base.settings.section import Section

_Whole = Annotated[int, Field(strict=False)]  # keys are text
Name = Annotated[_Whole | str, Field(union_mode="left_to_right")]
"""Of a row or column; a whole number where it reads as one."""

_Names = BeforeValidator(lambda names: names if isinstance(names, list) else [names])


class PublishedTable(Section):
    """One printed table: what its numbers are, and the names along both of its sides."""

    statistic: str
    """What each number is, such as bleu."""

    rows_are: str
    """What the rows are told apart by, such as run."""

    columns_are: Annotated[list[str], _Names]
    """Names of the columns' keys: one, or several."""

    columns: list[Annotated[list[Name], _Names]]
    """The keys of every column, in the order of `columns_are`."""

    same: dict[str, Name] = {}
    """Further keys that all numbers share."""

    rows: dict[Name, list[int | float | None]]
    """A number for every column; null where the paper has none."""

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
        """One number a row: the names of its row and column, value."""
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

    source: str
    """Authors, year and archive number."""

    metric: str
    """Which BLEU the paper prints, and who says so."""

    tables: dict[str, PublishedTable]
    """By name."""

    functions: dict[str, dict[Name, dict[Name, str]]] = {}
    """What heads do, in words: by pair, layer and rank, the last two from 1."""

    def table(self, name: str) -> pd.DataFrame:
        """The numbers of all tables that are called `name` or `name_…`, one a row.

        Columns: what tells rows and columns apart, then value.
        """
        named = [key for key in self.tables if key == name or key.startswith(f"{name}_")]
        return pd.concat([self.tables[key].tidy() for key in named], ignore_index=True)

    @property
    def beside_ours(self) -> str:
        """A sentence for captions in which printed BLEU stands beside ours."""
        theirs = f"Our BLEU is sacreBLEU's, the paper's: {self.metric}."
        return f"{theirs} So compare differences, not values."
