"""Point 5: Multi30k with three seeds, ways to choose heads and the papers' claims."""

from typing import Any

import pandas as pd

from headcount.findings.report.study.choosing import choosing
from headcount.findings.report.study.collapsed import named
from headcount.findings.report.study.intervals import capital, span, with_interval
from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.locking import short_locking
from headcount.findings.report.study.paper_claims import (
    against_papers,
    claim_cells,
    counted,
    names,
    no_run,
    read_claims,
)
from headcount.findings.results import BASE

EXPERIMENT = "multi30k_seeds"
BESIDE = ("multi30k_gates", "multi30k_from_none")
"""Experiments that decide claims which `EXPERIMENT` has no run for."""

_CLAIMS = names(1, 15, "HM") + names(1, 8, "MI") + names(17, 17, "MI") + names(12, 23, "VO")


def real_text(kept: Kept) -> dict[str, Any]:
    """What the page says of Multi30k; ways to choose and collapse where their tables are there.

    Nothing while no tables are kept.
    """
    if not kept.begun(EXPERIMENT):
        return {}
    rows, elsewhere = _claims(kept)
    variants = kept.has(EXPERIMENT, "headmask_variants")
    compared = choosing(kept, EXPERIMENT) if variants else {}
    short = "; ".join(filter(None, (_gains(kept) if variants else "", counted(rows))))
    against = against_papers(rows)
    return {
        "experiments": [EXPERIMENT, *elsewhere],
        "elsewhere": {name: ", ".join(claims) for name, claims in elsewhere.items()},
        "seeds": kept.table(EXPERIMENT, "bleu")["seed"].nunique(),
        "claims": [claim_cells(row) for _, row in rows.iterrows()],
        "short": f"{capital(short)}.",
        "answer": [f"{capital(short)}.", *_locked(kept), *compared.get("answer", []), against],
        "compared": compared,
        "picture": kept.picture(EXPERIMENT, "headmask_fig5"),
    }


def _claims(kept: Kept) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The claims' rows; and by experiment of `BESIDE` those of them that have no run but there."""
    rows, elsewhere = read_claims(kept, EXPERIMENT, _CLAIMS), {}
    for experiment in filter(kept.begun, BESIDE):
        more = read_claims(kept, experiment, rows.index[no_run(rows)])
        more = more[~no_run(more)]
        rows = pd.concat([rows.drop(more.index), more]).loc[rows.index]
        elsewhere |= {experiment: list(more.index)} if len(more) else {}
    return rows, elsewhere


def _gains(kept: Kept) -> str:
    """What each run with masks changes BLEU by, to the baseline."""
    compared = kept.compared(EXPERIMENT, "headmask_variants")
    rows = compared[compared["reference"] == BASE]
    rows = rows[(rows["statistic"] == "bleu") & (rows["test_set"] == "mean")]
    told = ", ".join(
        f"{named(kept, EXPERIMENT, row['run'])} by {with_interval(row, 2)}"
        for _, row in rows.iterrows()
    )
    if not told:
        return ""
    return f"masks change BLEU (trainings of each run: {span(rows['seeds'])}): {told}"


def _locked(kept: Kept) -> list[str]:
    """What Impt-N locks in, where the table is there."""
    known = kept.has(EXPERIMENT, "headmask_locked")
    return [short_locking(kept, EXPERIMENT)] if known else []
