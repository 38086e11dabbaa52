"""The claims of an experiment in its report: answers, decided claims and their evidence."""

import re
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from pydantic import RootModel

from headcount.analysis.cells import p_value
from headcount.analysis.inputs import INPUTS
from headcount.analysis.outputs import FORMS, Output
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Section

TABLE = "tables/claims.csv"
DECIDED = ("holds", "does not hold")
"""Verdicts of decided claims, in the order of the page."""

_COLUMNS = ("claim", "paper", "statement", "statistic", "verdict", "value", "low", "high")
_COLUMNS += ("p_adjusted", "seeds", "paper_value", "difference", "collapsed", "files")


class Answer(Section):
    """One paper's question, and the claims that may answer it; see `answers.yaml`."""

    paper: str
    question: str
    section: str
    figures: list[str]
    none: str
    claims: dict[str, dict[str, str]]


@cache
def answers() -> dict[str, Answer]:
    """Return the declared answers."""
    path = Path(__file__).with_suffix(".yaml")
    return read_settings(path, RootModel[dict[str, Answer]]).root


def read_claims(folder: Path) -> pd.DataFrame:
    """Return the table of claims of an experiment's results, without rows if there is none.

    Raises UserError if a column is missing.
    """
    path = folder / TABLE
    if not path.exists():
        return pd.DataFrame(columns=_COLUMNS)
    claims = pd.read_csv(path, dtype={"files": str, "collapsed": str})
    missing = [name for name in _COLUMNS if name not in claims]
    if missing:
        raise UserError(
            f"{path}: expected the columns {', '.join(_COLUMNS)}; found none named "
            f"{', '.join(missing)}; make the table again"
        )
    return claims


def main_claims(folder: Path, most: int) -> tuple[list[str], int]:
    """Return lines on the first decided claims of an experiment, and the number of all decided."""
    claims = read_claims(folder)
    decided = claims[claims["verdict"].isin(DECIDED)]
    lines = [
        f"  {row.verdict}: {row.statement} ({row.paper})\n    {row.statistic}: {numbers(row)}"
        for row in decided.head(most).itertuples()
    ]
    return lines, len(decided)


def read_warnings(files: Iterable[Path]) -> list[str]:
    """Return the warnings in the JSON files of tables and figures, each once."""
    warnings = (text for file in files for text in read_json(file).get("warnings", []))
    return list(dict.fromkeys(warnings))


def numbers(row: Any) -> str:
    """Return value, interval, corrected p value and number of training runs of a claim."""
    parts = []
    if pd.notna(row.value):
        ends = f" ({row.low:.2f} to {row.high:.2f})" if pd.notna(row.low) else ""
        parts.append(f"{row.value:.2f}{ends}")
    if pd.notna(row.p_adjusted):
        p = p_value(row.p_adjusted)
        parts.append(f"corrected p {p if p.startswith('<') else f'= {p}'}")
    return minus(", ".join([*parts, runs(row.seeds)]))


def runs(seeds: float) -> str:
    """Return a number of training runs as text."""
    return f"{seeds:.0f} training run{'' if seeds == 1 else 's'}"


def minus(text: str) -> str:
    """Return a text with a minus sign before negative numbers."""
    return re.sub(r"-(?=\d)", "−", text)


def answer(question: Answer, claims: pd.DataFrame) -> dict[str, Any]:
    """Return the sentence that answers a question, and the number behind it as text.

    The first decided claim counts, or else the first with a number.
    """
    known = claims[claims["value"].notna()].set_index("claim")
    known = known.loc[[name for name in question.claims if name in known.index]]
    decided = known[known["verdict"].isin(DECIDED)]
    if known.empty:
        return {"question": question, "sentence": question.none, "number": ""}
    row = (known if decided.empty else decided).iloc[0]
    texts = question.claims[row.name]
    value, low, high = (texts["format"].format(end) for end in (row.value, row.low, row.high))
    ends = f"95 % interval {low} to {high}" if pd.notna(row.low) else "without an interval"
    return {
        "question": question,
        "sentence": texts.get(row.verdict, texts["undecided"]),
        "number": minus(f"{value} {texts['unit']}"),
        "interval": minus(f"{ends}, {runs(row.seeds)}"),
        "name": texts["number"],
        "collapsed": row.collapsed if pd.notna(row.collapsed) else "",
    }


def rows(claims: pd.DataFrame, shown: Collection[Output]) -> list[dict[str, Any]]:
    """Return all claims as the page shows them; evidence is among the outputs `shown`.

    `apart`: the paper's number, our number and the difference, where the paper prints a number.
    """
    table = claims.assign(collapsed=claims["collapsed"].fillna(""))
    result = []
    for row in table.itertuples():
        cells = [f"{row.paper_value:.2f}", f"{row.value:.2f}", f"{row.difference:+.2f}"]
        texts = {"numbers": numbers(row), "name": row.statistic[:1].upper() + row.statistic[1:]}
        texts |= {"apart": [*map(minus, cells)] if pd.notna(row.difference) else []}
        result.append(row._asdict() | texts | {"evidence": evidence(row.files, shown)})
    return result


def open_claims(claims: pd.DataFrame) -> list[str]:
    """Return sentences on the claims that the experiment does not decide."""
    undecided = claims[~claims["verdict"].isin(DECIDED)]
    measured, others = (undecided[undecided["value"].notna() == known] for known in (True, False))
    sentences = []
    if len(measured):
        names = ", ".join(measured["claim"])
        sentences.append(f"{len(measured)} claims are measured here, but undecided: {names}.")
    if len(others):
        names = ", ".join(others["claim"])
        sentences.append(f"{len(others)} further claims are decided by other experiments: {names}.")
    return sentences


def evidence(files: str | float, shown: Collection[Output]) -> list[Output]:
    """Return outputs that show the files of a claim, one for each file.

    Of several outputs, the one that reads the fewest kinds shows most of the file.
    """
    chosen: set[str] = set()
    for name in files.split() if isinstance(files, str) else ():
        path = PurePosixPath(*PurePosixPath(name).parts[1:])  # without the experiment
        showing = [output for output in shown if _shows(output, path)]
        showing.sort(key=lambda output: len(output.required))
        chosen.update(output.anchor for output in showing[:1])
    return [output for output in shown if output.anchor in chosen]


def _shows(output: Output, path: PurePosixPath) -> bool:
    if f"{path.parts[0]}/" in {folder for folder, _ in FORMS.values()}:
        return str(path) in output.files
    kinds = (INPUTS[kind] for kind in output.required)
    return any(kind.folder == path.parts[0] and path.name in kind.names for kind in kinds)
