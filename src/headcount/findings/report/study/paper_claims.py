"""What the table of claims of kept experiments says of some of the papers' claims."""

from collections.abc import Sequence

import pandas as pd

from headcount.findings.claims.verdicts import ALONE, FAILS, NO_RUN, UNDECIDED, VERDICTS
from headcount.findings.report.study.intervals import with_interval
from headcount.findings.report.study.kept import Kept
from headcount.findings.tables import NONE


def names(first: int, last: int, paper: str) -> list[str]:
    """Claims of a paper by number, such as HM-01."""
    return [f"{paper}-{number:02d}" for number in range(first, last + 1)]


def read_claims(kept: Kept, experiment: str, wanted: Sequence[str]) -> pd.DataFrame:
    """These claims' rows, by name, in the order of `wanted`; those that the table has."""
    table = kept.table(experiment, "claims").set_index("claim", drop=False)
    return table.loc[[name for name in wanted if name in table.index]]


def no_run(rows: pd.DataFrame) -> pd.Series:
    """Whether each claim is undecided for want of a run."""
    return rows["reason"].astype(str).str.startswith(NO_RUN)


def claim_cells(row: pd.Series) -> dict[str, str]:
    """A claim as the page has it: verdict, number with its interval, trainings, the paper's.

    Without a number stands the reason why.
    """
    theirs = row["paper_value"]
    return {
        "claim": row["claim"],
        "statement": row["statement"],
        "statistic": row["statistic"],
        "verdict": _verdict(row),
        "reason": str(row["reason"]),
        "number": row["reason"] if pd.isna(row["value"]) else with_interval(row, 2, ""),
        "seeds": f"{row['seeds']:.0f}" if row["seeds"] else NONE,
        "paper": NONE if pd.isna(theirs) else f"{theirs:.2f}",
    }


def _verdict(row: pd.Series) -> str:
    """The verdict, with that which the claim would have were it the only one of its paper."""
    before, found, _ = str(row["reason"]).partition(ALONE)
    return f"{row['verdict']} (alone: {before})" if found else row["verdict"]


def counted(rows: pd.DataFrame) -> str:
    """How many claims have each verdict, in words."""
    counts, reasons = rows["verdict"].value_counts(), rows["reason"].astype(str)
    why = {
        "for want of a run": no_run(rows).sum(),
        "decided if alone": reasons.str.contains(ALONE, regex=False).sum(),
    }
    words = ", ".join(f"{count} {reason}" for reason, count in why.items() if count)
    of = {UNDECIDED: f" ({words})" if words else ""}
    told = [f"{name} {counts[name]}{of.get(name, '')}" for name in VERDICTS if name in counts]
    return f"of {len(rows)} claims of the papers: {', '.join(told)}"


def against_papers(rows: pd.DataFrame) -> str:
    """The claims that do not hold here, with their numbers beside the paper's."""
    found = rows[rows["verdict"] == FAILS]
    if found.empty:
        return "No claim is found against its paper."
    told = []
    for _, row in found.iterrows():
        cells = claim_cells(row)
        theirs = "" if cells["paper"] == NONE else f"; the paper's: {cells['paper']}"
        told.append(f"{row['claim']} ({row['statistic']}: {cells['number']}{theirs})")
    return f"Otherwise than in its paper: {'; '.join(told)}."


def short_claims(rows: pd.DataFrame, asked: dict[str, str]) -> str:
    """Verdict, number and trainings of some claims, by name, in a reader's words."""
    told = []
    for name, words in asked.items():
        if name in rows.index:
            cells = claim_cells(rows.loc[name])
            number = f"{cells['number']}; trainings: {cells['seeds']}"
            if rows.loc[name, "verdict"] == UNDECIDED and cells["number"] != cells["reason"]:
                number += f"; {cells['reason']}"
            told.append(f"{words}: {rows.loc[name, 'verdict']} ({cells['statistic']}: {number})")
    return "; ".join(told)
