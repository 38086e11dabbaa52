"""The claims of an experiment in its report: answers, decided claims and their evidence."""

import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.analysis import read_beside
from headcount.analysis.outputs import Output
from headcount.analysis.writer import p_value
from headcount.base.errors import UserError

TABLE = "tables/claims.csv"
HEADLINES = "tables/phenomena.csv"
DECIDED = ("holds", "does not hold")  # verdicts of decided claims, in the order of the page
_COLUMNS = ["claim", "paper", "place", "statement", "statistic", "verdict", "value", "low", "high"]
_COLUMNS += ["limit", "p_adjusted", "seeds", "paper_value", "difference", "collapsed", "files"]


def read_claims(folder: Path) -> pd.DataFrame:
    """Return the claims that the results in a folder measure. `numbers` is their text."""
    path, text = folder / TABLE, {"collapsed": str, "files": str}
    table = pd.read_csv(path, dtype=text) if path.exists() else pd.DataFrame(columns=_COLUMNS)
    if missing := [name for name in _COLUMNS if name not in table]:
        raise UserError(f"{path}: expected the column {missing[0]}; make the table again")
    table[[*text]] = table[[*text]].fillna("")
    return table.assign(numbers=[_numbers(row) for row in table.itertuples()])


def headlines(folder: Path) -> dict[str, Any]:
    """Return the papers' headline results in a folder, with how many hold; empty without any."""
    path = folder / HEADLINES
    table = pd.read_csv(path) if path.exists() else pd.DataFrame()
    if table.empty:
        return {}
    ends = [f"{r.ours:.2f} ({r.low:.2f} to {r.high:.2f})" for r in table.itertuples()]
    rows = table.fillna("").assign(numbers=list(map(minus, ends))).to_dict("records")
    counted = table.dropna(subset="paper")  # others are for comparison
    generated = bool(table["pairs"].str.contains("synthetic").all())
    return {"rows": rows, "counts": Counter(counted["holds"]), "generated": generated}


def _numbers(row: Any) -> str:
    """Return value, interval, corrected p value and number of training runs of a claim."""
    ends = f" ({row.low:.2f} to {row.high:.2f})" if pd.notna(row.low) else ""
    p = "" if pd.isna(row.p_adjusted) else f", corrected p = {p_value(row.p_adjusted)}"
    return minus(f"{row.value:.2f}{ends}{p.replace('= <', '<')}, {_runs(row.seeds)}")


def _runs(seeds: float) -> str:
    return f"{seeds:.0f} training run{'' if seeds == 1 else 's'}"


def minus(text: str) -> str:
    """Return a text with a minus sign before negative numbers."""
    return re.sub(r"-(?=\d)", "−", text)


def decided_claims(folder: Path) -> list[str]:
    """Return two lines of text on every decided claim of an experiment."""
    claims = read_claims(folder)
    return [
        f"  {row.verdict}: {row.statement} ({row.paper})\n    {row.statistic}: {row.numbers}"
        for row in claims[claims["verdict"].isin(DECIDED)].itertuples()
    ]


def answers(claims: pd.DataFrame) -> list[dict[str, Any]]:
    """Return an answer for every paper."""
    return [_answer(item, claims) for item in read_beside(__file__).values()]


def _answer(question: dict[str, Any], claims: pd.DataFrame) -> dict[str, Any]:
    """Return the sentence that answers a question, and the number behind it as text."""
    known = claims[claims["claim"].isin(list(question["claims"]))]
    decided = known["verdict"].isin(DECIDED)
    if known.empty:
        return {"question": question, "sentence": question["none"], "number": ""}
    row = known.loc[decided.idxmax()]  # the first, if none is decided
    texts = question["claims"][row["claim"]]
    value, low, high = (f"{row[name]:+.2f}" for name in ("value", "low", "high"))
    ends = f"95 % interval {low} to {high}" if pd.notna(row["low"]) else "without an interval"
    return {
        "question": question,
        "sentence": texts[row["verdict"]].format(limit=f"{abs(row['limit']):g}"),
        "number": minus(f"{value} BLEU"),
        "interval": minus(f"{ends}, {_runs(row['seeds'])}"),
        "name": texts["number"],
        "collapsed": row["collapsed"],
    }


def evidence(files: str, shown: Collection[Output]) -> list[Output]:
    """Return the tables and figures whose files decide a claim."""
    names = {name.partition("/")[2] for name in files.split()}  # without the experiment
    return [output for output in shown if names.intersection(output.files)]
