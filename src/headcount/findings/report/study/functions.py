"""Point 4: positional, syntactic and rare-word heads, by the claims on the roles of heads."""

from typing import Any

from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.paper_claims import (
    MULTI30K,
    claim_cells,
    multi30k_claims,
    names,
    read_claims,
    short_claims,
)
from headcount.findings.tables import NONE

EXPERIMENT = "roles"
CLAIMS = names(4, 11, "VO")
_ASKED = {"VO-04": "positional heads", "VO-07": "syntactic heads", "VO-10": "a rare-word head"}


def functions(kept: Kept) -> dict[str, Any]:
    """What the page says of heads with a function; nothing while none is kept."""
    if not kept.begun(EXPERIMENT):
        return {}
    shown = [EXPERIMENT] + [MULTI30K] * kept.has(MULTI30K, "claims")
    found = {EXPERIMENT: read_claims(kept, EXPERIMENT, CLAIMS)}
    if len(shown) > 1:  # as corrected among all claims that the page has of Multi30k
        beside = multi30k_claims(kept, CLAIMS)[0]
        found[MULTI30K] = beside.loc[beside.index.intersection(CLAIMS)]
    cells = {
        name: {row["claim"]: claim_cells(row) for _, row in rows.iterrows()}
        for name, rows in found.items()
    }
    return {
        "experiments": shown,
        "rows": [
            {"statement": next(c[claim] for c in cells.values() if claim in c)["statement"]}
            | {"claim": claim, "cells": [_cell(of.get(claim)) for of in cells.values()]}
            for claim in CLAIMS
            if any(claim in of for of in cells.values())
        ],
        "short": [f"In `{EXPERIMENT}`: {short_claims(found[EXPERIMENT], _ASKED)}."],
    }


def _cell(cells: dict[str, str] | None) -> str:
    """Verdict, number, reason and trainings of a claim in one experiment; the paper's number."""
    if cells is None:
        return NONE
    told = [f"{cells['verdict']}: {cells['number']}", f"trainings: {cells['seeds']}"]
    if cells["reason"] not in ("", "nan", cells["number"]):
        told.insert(1, cells["reason"])
    told += [f"in the paper {cells['paper']}"] * (cells["paper"] != NONE)
    return "; ".join(told)
