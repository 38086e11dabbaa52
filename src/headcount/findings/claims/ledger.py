"""The claims as data: what each says, what the paper prints, what decides it."""

from functools import cache
from math import nan
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import RootModel

from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Section
from headcount.findings.published import headmask, michel, voita

PAPERS = {
    "HM": ("headmask", "Sun et al. 2020, HeadMask"),
    "MI": ("michel", "Michel et al. 2019"),
    "VO": ("voita", "Voita et al. 2019"),
    "VB": ("voita", "Libovický 2019, a blog on Voita et al."),
    "X": ("", "across papers"),
}
"""By the first letters of a claim: where its numbers are published, and how people call it.

The claims of a paper are a family: they are corrected for being many.
"""

_PUBLISHED = {
    "headmask": lambda name: headmask.table(int(name.removeprefix("table"))),
    "michel": michel.table,
    "voita": voita.table,
}
_Limit = float | int | str | bool | list[float] | list[str]


class Printed(Section):
    """Numbers that a paper prints, as `findings/published` has them."""

    tables: list[str]
    """Names of its tables; numbers come in their order."""

    where: dict[str, int | str] = {}
    """Which rows: column and value."""

    against: dict[str, int | str] = {}
    """Which rows are beside them, for a difference or ratio; all other columns are the same."""

    how: Literal["value", "difference", "ratio", "sum", "count"] = "value"
    """What is made of them."""

    def numbers(self, paper: str) -> list[float]:
        """The numbers, in the paper's units. Raises KeyError for a table or column it lacks."""
        return self._found(paper)["value"].tolist()

    def mean(self, paper: str) -> float:
        """Mean of the numbers; a direction of translation counts once, with that of its test sets.

        Raises as `numbers`.
        """
        found = self._found(paper)
        if {"pair", "test_set"} <= set(found):
            return float(found.groupby("pair")["value"].mean().mean())
        return float(found["value"].mean())

    def _found(self, paper: str) -> pd.DataFrame:
        found = pd.concat([self._of(_PUBLISHED[paper](name)) for name in self.tables])
        return found if self.how != "sum" else pd.DataFrame({"value": [found["value"].sum()]})

    def _of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The numbers as column `value`, beside what still tells them apart."""
        if self.how == "count":
            return pd.DataFrame({"value": [float(len(table))]})
        chosen = _rows(table, self.where).astype({"value": float})
        if not self.against:
            return chosen
        keys = [name for name in table.columns if name not in ("value", *self.where)]
        other = _rows(table, self.against)
        if not keys:
            chosen, other = chosen.assign(key=0), other.assign(key=0)
        both = chosen.merge(other, on=keys or ["key"], suffixes=("", "_against"))
        sides = both["value"], both["value_against"]
        made = sides[0] - sides[1] if self.how == "difference" else sides[0] / sides[1]
        return both[keys].assign(value=made.round(3))


def _rows(table: pd.DataFrame, where: dict[str, int | str]) -> pd.DataFrame:
    for column, value in where.items():
        table = table[table[column] == value]
    return table


class Needs(Section):
    """The run that decides a claim."""

    run: str
    """What is run, in words."""

    experiments: list[str] = []
    """Files in config/ that run it; none where no file does."""


class Claim(Section):
    """One claim of a paper."""

    place: str
    """Section, table or figure."""

    statement: str
    """What it says."""

    statistic: str
    """What the number that decides it is, with its unit and direction."""

    about: Literal["model", "trainings"] = "model"
    """What a verdict is about: the models that were looked at, or ways of training, of which one
    training says nothing."""

    decide: str
    """The function that decides it, in `decisions.DECISIONS`."""

    limits: dict[str, _Limit] = {}
    """Its arguments: thresholds."""

    limits_from: str = ""
    """Where its thresholds come from."""

    printed: dict[str, Printed | float | str | list[float]] = {}
    """The paper's own numbers, by what they are in a reader's words."""

    beside: Literal["first"] | list[float] = []
    """The paper's numbers of this very statistic: the first of `printed`, or others that follow
    from what it prints. None where corpus or score make a difference to ours mean nothing."""

    needs: Needs
    """The run that decides it."""


class Ledger(RootModel[dict[str, Claim]]):
    """Claims by their names."""


@cache
def claims() -> dict[str, Claim]:
    """All claims by name, in the order of the papers."""
    return read_settings(Path(__file__).with_suffix(".yaml"), Ledger).root


def paper_of(name: str) -> str:
    """First letters of a claim's name: its paper, one of `PAPERS`."""
    return name.partition("-")[0]


def beside_ours(name: str, claim: Claim) -> float:
    """The paper's own value of a claim's statistic, of several their mean; NaN without one."""
    if claim.beside == "first":
        first = next(iter(claim.printed.values()))
        if isinstance(first, Printed):
            return first.mean(PAPERS[paper_of(name)][0])
        return float(np.mean(first))
    return float(np.mean(claim.beside)) if claim.beside else nan


def _values(name: str, found: Printed | float | str | list[float]) -> list[float | str]:
    if isinstance(found, Printed):
        found = found.numbers(PAPERS[paper_of(name)][0])
    return found if isinstance(found, list) else [found]


def printed_words(name: str, claim: Claim) -> str:
    """The paper's own numbers in one line, by what they are; empty where it prints none."""
    parts = []
    for what, found in claim.printed.items():
        values = _values(name, found)
        words = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
        parts.append(f"{what}: {words}")
    return "; ".join(parts)
