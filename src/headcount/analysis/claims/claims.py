"""The claims and the files that decide them, as `claims.yaml` lists and explains them."""

from functools import cache
from math import nan
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from headcount.analysis import read_beside
from headcount.analysis.published import headmask, michel, voita
from headcount.base.settings.section import Section

PAPERS = {
    "HM": "Sun et al. 2020, HeadMask",
    "MI": "Michel et al. 2019",
    "VO": "Voita et al. 2019",
    "VB": "Libovický 2019, a blog on Voita et al.",
    "X": "across papers",
}
_PUBLISHED = {"HM": headmask.PAPER, "MI": michel.PAPER, "VO": voita.PAPER, "VB": voita.PAPER}
_Argument = int | float | bool | str | list[str]
_Limit = int | float | dict[str, int | float]


class Source(Section):
    """Rows of files that metrics read under one name."""

    file: list[str]
    columns: list[str] = []
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
