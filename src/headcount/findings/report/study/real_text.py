"""Point 5: Multi30k with three seeds, ways to choose heads and the papers' claims."""

from typing import Any

from headcount.findings.report.study.choosing import change, choosing
from headcount.findings.report.study.collapsed import collapsed_words
from headcount.findings.report.study.intervals import capital
from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.locking import short_locking
from headcount.findings.report.study.paper_claims import (
    against_papers,
    claim_cells,
    counted,
    names,
    read_claims,
)
from headcount.findings.results import BASE
from headcount.findings.tables import NONE

EXPERIMENT = "multi30k_seeds"
_CLAIMS = names(1, 15, "HM") + names(1, 8, "MI") + names(12, 23, "VO")


def real_text(kept: Kept) -> dict[str, Any]:
    """What the page says of Multi30k; ways to choose and collapse where their tables are there.

    Nothing while no tables are kept.
    """
    if not kept.begun(EXPERIMENT):
        return {}
    rows = read_claims(kept, EXPERIMENT, _CLAIMS)
    variants = kept.has(EXPERIMENT, "headmask_variants")
    compared = choosing(kept, EXPERIMENT) if variants else {}
    short = "; ".join(filter(None, (_gains(kept) if variants else "", counted(rows))))
    return {
        "experiments": [EXPERIMENT],
        "seeds": kept.table(EXPERIMENT, "bleu")["seed"].nunique(),
        "claims": [claim_cells(row) for _, row in rows.iterrows()],
        "short": f"{capital(short)}.",
        "answer": f"{capital(short)}. {against_papers(rows)}",
        "compared": compared,
        "locked": _locked(kept),
        "picture": kept.picture(EXPERIMENT, "headmask_fig5"),
    }


def _gains(kept: Kept) -> str:
    """What each run with masks changes BLEU by."""
    compared = kept.compared(EXPERIMENT, "headmask_variants")
    runs = [run for run in compared["run"].unique() if run != BASE]
    cells = {run: change(compared, run, "bleu", BASE) for run in runs}
    told = ", ".join(f"`{run}` by {cell}" for run, cell in cells.items() if cell != NONE)
    return f"masks in training change BLEU from that of the baseline: {told}" if told else ""


def _locked(kept: Kept) -> str:
    """What Impt-N locks in, and in how many trainings of each run heads that were masked nearly
    always did harm; of tables that are there.
    """
    told = [collapsed_words(kept, EXPERIMENT)]
    if kept.has(EXPERIMENT, "headmask_locked"):
        told.insert(0, short_locking(kept, EXPERIMENT))
    return " ".join(filter(None, told))
