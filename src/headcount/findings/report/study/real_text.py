"""Point 5: Multi30k with three seeds, ways to choose heads and the papers' claims."""

from typing import Any

from headcount.findings.report.study.choosing import choosing
from headcount.findings.report.study.collapsed import named
from headcount.findings.report.study.foretelling import foretelling
from headcount.findings.report.study.functions import CLAIMS as ON_FUNCTIONS
from headcount.findings.report.study.intervals import (
    capital,
    mean_ratio_of,
    span,
    with_interval,
)
from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.locking import locked_rows, locking_words, place_words
from headcount.findings.report.study.paper_claims import (
    MULTI30K,
    against_papers,
    claim_cells,
    counted,
    multi30k_claims,
    no_run,
)
from headcount.findings.report.study.pruned import pruned_rows
from headcount.findings.results import BASE

EXPERIMENT = MULTI30K


def real_text(kept: Kept) -> dict[str, Any]:
    """What the page says of Multi30k; ways to choose and locked heads where their tables are there.

    All claims of the papers but those on heads with a function, which have a section of their own.
    Nothing while no tables are kept.
    """
    if not kept.begun(EXPERIMENT):
        return {}
    every, elsewhere = multi30k_claims(kept, ON_FUNCTIONS)
    every = every.drop(every.index.intersection(ON_FUNCTIONS))
    lacking, rows = every[no_run(every)], every[~no_run(every)]
    variants = kept.has(EXPERIMENT, "headmask_variants")
    compared = choosing(kept, EXPERIMENT) if variants else {}
    short = "; ".join(filter(None, (_gains(kept) if variants else "", counted(rows))))
    locked = _locked(kept)
    answer = [f"{capital(short)}.", _importance(kept), *locked.get("answer", [])]
    answer += [*compared.get("answer", []), against_papers(rows)]
    return {
        "experiments": [EXPERIMENT, *elsewhere],
        "elsewhere": {name: ", ".join(claims) for name, claims in elsewhere.items()},
        "seeds": kept.table(EXPERIMENT, "bleu")["seed"].nunique(),
        "claims": [claim_cells(row) for _, row in rows.iterrows()],
        "short": [f"{capital(short)}."],
        "answer": list(filter(None, answer)),
        "lacking": [f"{claim} ({needs})" for claim, needs in lacking["needs"].items()],
        "compared": compared,
        "pruned": pruned_rows(kept, [EXPERIMENT, *elsewhere]),
        "locked": locked,
        "picture": kept.picture(EXPERIMENT, "headmask_fig5"),
    }


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


def _importance(kept: Kept) -> str:
    """Variance and mean of head importance over the baseline's, by run; empty without tables."""
    tables = {"variance": "headmask_table5", "mean": "headmask_table6"}
    if not all(kept.has(EXPERIMENT, table) for table in tables.values()):
        return ""
    told = []
    for words, name in tables.items():
        rows = kept.table(EXPERIMENT, name).dropna(subset="seed")
        rows = rows[(rows["source"] == "ours") & (rows["run"] != BASE)]
        runs = ", ".join(
            f"{named(kept, EXPERIMENT, run)} {with_interval(mean_ratio_of(ratios), 2, '')}"
            for run, ratios in rows.groupby("run", sort=False)["ratio_to_baseline"]
        )
        told.append(f"the {words} of head importance is {runs}")
    return f"Divided by the baseline's (geometric means over trainings), {'; '.join(told)}."


def _locked(kept: Kept) -> dict[str, Any]:
    """What the page says of heads that are locked in, where the table is there."""
    if not kept.has(EXPERIMENT, "headmask_locked"):
        return {}
    table = kept.table(EXPERIMENT, "headmask_locked")
    over = table[table["seed"].isna() & (table["n"] > 0)]
    foretold = foretelling(kept, EXPERIMENT, over["run"].tolist())
    told = [locking_words(kept, EXPERIMENT), place_words(over), *foretold.get("answer", [])]
    return {
        "rows": locked_rows(kept, EXPERIMENT),
        "foretold": foretold,
        "picture": kept.picture(EXPERIMENT, "headmask_locked_fig"),
        "answer": list(filter(None, told)),
    }
