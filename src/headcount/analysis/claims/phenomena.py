"""The papers' headline results as phenomena, and whether an experiment shows them."""

from functools import cache
from math import nan
from typing import Any

import pandas as pd

from headcount.analysis import read_beside
from headcount.analysis.claims.claims import Claim, Evidence, Rule, ledger
from headcount.analysis.claims.estimates import BOUNDS
from headcount.analysis.claims.table import FAILS, HOLDS, UNDECIDED, decide, measure
from headcount.analysis.stats import ALPHA
from headcount.base.settings.section import Section

COLUMNS = ["phenomenon", "paper", "ours", "low", "high", "limit", "holds", "number", "pairs"]


class Phenomenon(Section):
    """A headline result. It has the number of a claim, or one of its own."""

    phenomenon: str
    paper: str
    claim: str
    statistic: str = ""
    metric: dict[str, dict[str, int | float | bool | str | list[str]]] = {}
    test: Rule = Rule()
    any: bool = False

    def as_claim(self) -> Claim:
        """Return the claim with this metric, statistic and test where given."""
        given = self.model_fields_set & {"metric", "statistic", "test"}
        changes = {name: getattr(self, name) for name in given}
        return ledger().claims[self.claim].model_copy(update=changes)


@cache
def phenomena() -> dict[str, Phenomenon]:
    """Return the content of `phenomena.yaml`."""
    return read_beside(__file__, dict[str, Phenomenon])


def phenomena_table(evidence: Evidence) -> pd.DataFrame:
    """Return a row with columns of `COLUMNS` for every phenomenon that the results measure."""
    rows = []
    for item in phenomena().values():
        claim = item.as_claim()
        numbers = measure(claim, evidence)
        parts = numbers["part"].nunique() if item.any and "part" in numbers else 1
        if parts > 1:
            best = numbers.groupby("part")["value"].mean().idxmax()
            numbers = numbers[numbers["part"] == best].drop(columns="part")
        if numbers.empty:
            continue
        decision = decide(numbers, claim.test) or _single(numbers, claim.test)
        sure = (decision["sure"] and parts == 1) or decision["p"] * parts < ALPHA
        verdict = (HOLDS if decision["holds"] else FAILS) if sure else UNDECIDED
        ours = dict(zip(["ours", "low", "high"], (decision[name] for name in BOUNDS), strict=True))
        limit = f"{decision['side']} {decision['limit']:g}"
        row = {"phenomenon": item.phenomenon, "paper": item.paper, "number": claim.statistic}
        row |= {"limit": limit, "holds": verdict, "pairs": " ".join(sorted({*numbers["pair"]}))}
        rows.append(row | ours)
    return pd.DataFrame(rows, columns=COLUMNS)


def _single(numbers: pd.DataFrame, test: Rule) -> dict[str, Any]:
    """Return the undecided row of a number of one training, which has no interval."""
    ((side, limit),) = test.model_dump(include={"above", "below"}, exclude_none=True).items()
    value = {"value": numbers["value"].mean(), "low": nan, "high": nan}
    return value | {"side": side, "limit": limit, "sure": False, "p": 1.0, "holds": False}
