"""What the tables of claims of kept experiments say of the papers' claims."""

import re
from collections.abc import Iterable

import pandas as pd

from headcount.findings.claims.table import as_one_family
from headcount.findings.claims.verdicts import ALONE, FAILS, NO_RUN, UNDECIDED, VERDICTS
from headcount.findings.report.study.intervals import with_interval
from headcount.findings.report.study.kept import Kept
from headcount.findings.tables import NONE

MULTI30K = "multi30k_seeds"
BESIDE = ("multi30k_gates", "multi30k_from_none")
"""Experiments that decide claims which `MULTI30K` has no run for."""

_FAILED = "of collapsed trainings"
_OF_SEVERAL = re.compile(
    r"(?:^|(?<=[;:] ))(?:of \d+: [^(;]*[^(; ]|decided by: [^;]*|of controls [^;]*)"
)
"""What a reason says of a claim about several models, runs or test sets, and of their controls."""


def names(first: int, last: int, paper: str) -> list[str]:
    """Claims of a paper by number, such as HM-01."""
    return [f"{paper}-{number:02d}" for number in range(first, last + 1)]


def all_claims(kept: Kept, experiment: str) -> pd.DataFrame:
    """The rows of the table of claims, by name, in its order."""
    return kept.table(experiment, "claims").set_index("claim", drop=False)


def multi30k_claims(kept: Kept, apart: Iterable[str]) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """All claims' rows of Multi30k; and by experiment of `BESIDE` those that have no run but there.

    Claims that are `apart` are those of `MULTI30K` alone. All of a paper are corrected together.
    """
    rows, elsewhere = all_claims(kept, MULTI30K), {}
    for experiment in filter(kept.begun, BESIDE):
        wanted = rows.index[no_run(rows)].difference(pd.Index(apart), sort=False)
        more = read_claims(kept, experiment, wanted)
        more = more[~no_run(more)]
        rows = pd.concat([rows.drop(more.index), more]).loc[rows.index]
        elsewhere |= {experiment: list(more.index)} if len(more) else {}
    return as_one_family(rows), elsewhere


def read_claims(kept: Kept, experiment: str, wanted: Iterable[str]) -> pd.DataFrame:
    """These claims' rows, by name, in the order of `wanted`; those that the table has."""
    table = all_claims(kept, experiment)
    return table.loc[[name for name in wanted if name in table.index]]


def no_run(rows: pd.DataFrame) -> pd.Series:
    """Whether each claim is undecided for want of a run."""
    return rows["reason"].astype(str).str.startswith(NO_RUN)


def claim_cells(row: pd.Series) -> dict[str, str]:
    """A claim as the page has it: verdict, number with its interval, trainings, the paper's.

    Without a number stands the reason why. `here`: of a number of several, how many of them hold,
    or which decided, as well.
    """
    theirs, reason = row["paper_value"], str(row["reason"])
    number = reason if pd.isna(row["value"]) else with_interval(row, 2, "")
    several = [] if pd.isna(row["value"]) else _OF_SEVERAL.findall(reason)
    return {
        "claim": row["claim"],
        "statement": row["statement"],
        "statistic": row["statistic"],
        "verdict": _verdict(row),
        "reason": reason,
        "number": number,
        "here": "; ".join([number, *several]),
        "seeds": f"{row['seeds']:.0f}" if row["seeds"] else NONE,
        "paper": NONE if pd.isna(theirs) else f"{theirs:.2f}",
    }


def _verdict(row: pd.Series) -> str:
    """The verdict, with that which the claim would have were it the only one of its paper.

    Says so where trainings that collapsed are among those that it is of.
    """
    before, found, _ = str(row["reason"]).partition(ALONE)
    told = [f"alone: {before}"] * bool(found) + [_FAILED] * (not pd.isna(row["collapsed"]))
    return f"{row['verdict']} ({'; '.join(told)})" if told else row["verdict"]


def counted(rows: pd.DataFrame) -> str:
    """How many claims have each verdict, in words."""
    counts, reasons = rows["verdict"].value_counts(), rows["reason"].astype(str)
    alone = (reasons.str.contains(ALONE, regex=False), "decided if alone")
    told = []
    for name in (name for name in VERDICTS if name in counts):
        why = alone if name == UNDECIDED else (rows["collapsed"].notna(), _FAILED)
        of = (why[0] & (rows["verdict"] == name)).sum()
        told.append(f"{name} {counts[name]}" + (f" ({of} {why[1]})" if of else ""))
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
        told.append(f"{row['claim']} ({row['statistic']}: {cells['here']}{theirs})")
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
