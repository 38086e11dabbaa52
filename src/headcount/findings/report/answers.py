"""What a page of results answers before all else, decided or not, in numbers of its tables."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headcount.base.files import read_json
from headcount.findings.report.opening import Finding
from headcount.findings.report.questions import QUESTIONS
from headcount.findings.results import BASE
from headcount.findings.tables import NONE

_SCORES = [f"headmask_table{number}" for number in (2, 3, 4)]
_CHANCE = "are over test sentences of one training each: they do not say what others would give."


def answer_headmask(results: Path) -> str:
    """An entry of a list: BLEU of each run with masked heads minus the baseline's, by test set.

    With the 95 % interval, and in how many trainings of its seeds a run collapsed; empty without
    such a run.
    """
    rows = [row for name in _SCORES for row in _rows(results, name) if _compared(row)]
    trained: dict[tuple[str, str], list[bool]] = {}
    for row in _rows(results, "headmask_collapse"):
        trained.setdefault((row["pair"], row["run"]), []).append(row["collapsed"] == "yes")
    told: dict[str, dict[str, None]] = {}  # the first pair stands in two tables
    for row in rows:
        run = row["run"] + _collapsed(trained.get((row["pair"], row["run"]), []))
        words = f"{run} {row['difference']} ({row['95 % interval']})"
        told.setdefault(f"{row['test set']} of {row['pair']}", {})[words] = None
    if not told:
        return ""
    listed = "; ".join(f"{task}: {', '.join(runs)}" for task, runs in told.items())
    of_one = [row["run"] for row in rows if row.get("p (t-test)", NONE) == NONE]
    which = "" if len(of_one) == len(rows) else f" of {', '.join(dict.fromkeys(of_one))}"
    warning = f" Intervals{which} {_CHANCE}" if of_one else ""
    return (
        "- **Did training with masked heads help BLEU here?** Difference to the baseline, with "
        f"its 95 % interval, on {listed}.{warning}"
    )


def _collapsed(trainings: list[bool]) -> str:
    """What stands behind the name of a run, whether each of whose trainings collapsed is told."""
    if not any(trainings):
        return ""
    if all(trainings):
        return " (collapsed)"
    return f" ({sum(trainings)} of {len(trainings)} trainings collapsed)"


def _rows(results: Path, name: str) -> list[dict[str, str]]:
    """The shown cells of a table by column; none of a table that is not there."""
    path = results / "tables" / f"{name}.json"
    if not path.exists():
        return []
    found: dict[str, Any] = read_json(path)
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def _compared(row: Mapping[str, str]) -> bool:
    """Whether a row compares a run that masks heads: baselines of other dropout mask none."""
    masks = row["run"].partition("-")[0] != BASE
    return masks and row["source"] == "ours" and row["difference"] != NONE


def answer_questions(known: Mapping[str, Finding]) -> Iterator[tuple[str, Finding]]:
    """A question's heading and a claim whose number answers it, for all such claims."""
    for question in QUESTIONS:
        for name in question.claims:
            if name in known:
                yield question.title, known[name]
