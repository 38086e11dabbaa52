"""What a page of results answers before all else, decided or not, in numbers of its tables."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.files import read_json
from headcount.base.settings.short_names import read_training_name
from headcount.findings.report.opening import Finding
from headcount.findings.report.questions import Question
from headcount.findings.report.study.intervals import with_interval
from headcount.findings.results import BASE
from headcount.findings.tables import NONE

_SCORES = [f"headmask_table{number}" for number in (2, 3, 4)]
_CHANCE = "are over test sentences of one training each: they do not say what others would give."


def answer_headmask(results: Path) -> str:
    """An entry of a list: what masked heads change in BLEU, for each run and test set.

    That is BLEU minus the baseline's, and minus that of as much dropout without masks for a run
    with a dropout of its own, of which the baseline's would be a part of the difference. With the
    95 % interval, and in how many trainings of its seeds a run collapsed; empty without such a run.
    """
    rows = [row for name in _SCORES for row in _rows(results, name) if _compared(row)]
    trained: dict[tuple[str, str], list[bool]] = {}
    for row in _rows(results, "headmask_collapse"):
        trained.setdefault((row["pair"], row["run"]), []).append(row["collapsed"] == "yes")
    alike = _beside_alike(results)
    told: dict[str, dict[str, None]] = {}  # the first pair stands in two tables
    for row in rows:
        run = row["run"] + _collapsed(trained.get((row["pair"], row["run"]), []))
        change = f" {row['difference']} ({row['95 % interval']})"
        if _own_dropout(row):
            key = (row["pair"], row["test set"], row["run"])
            change = alike.get(key, ", without a run of as much dropout to compare it with")
        told.setdefault(f"{row['test set']} of {row['pair']}", {})[run + change] = None
    if not told:
        return ""
    listed = "; ".join(f"{task}: {', '.join(runs)}" for task, runs in told.items())
    others = any(map(_own_dropout, rows))
    alone = "the run of as much dropout that is named"
    against = "the baseline" + f", or to {alone}" * others
    against = alone if all(map(_own_dropout, rows)) else against
    return (
        f"- **Did training with masked heads help BLEU here?** Difference to {against}, with its "
        f"95 % interval, on {listed}.{_of_one_training(rows)}"
    )


def _of_one_training(rows: list[dict[str, str]]) -> str:
    """A sentence on intervals of differences to the baseline that are of one training each."""
    of_base = [row for row in rows if not _own_dropout(row)]
    of_one = [row["run"] for row in of_base if row.get("p (t-test)", NONE) == NONE]
    which = "" if len(of_one) == len(rows) else f" of {', '.join(dict.fromkeys(of_one))}"
    return f" Intervals{which} {_CHANCE}" if of_one else ""


def _beside_alike(results: Path) -> dict[tuple[str, str, str], str]:
    """What each run changes in BLEU to as much dropout without masks, by pair, test set and run."""
    path = results / "tables" / "headmask_regularisation.csv"
    if not path.exists():
        return {}
    table = pd.read_csv(path)
    rows = table[(table["statistic"] == "bleu") & (table["reference"] == "same dropout")]
    told = {}
    for row in rows.to_dict("records"):
        one = " (one training, no interval)" * pd.isna(row["low"])
        key = (row["pair"], row["test_set"], row["run"])
        told[key] = f" {with_interval(row, 2)}{one} to {row['against']}"
    return told


def _own_dropout(row: Mapping[str, str]) -> bool:
    """Whether a row is of a run with another dropout than the baseline's, as its name tells."""
    return "dropout" in read_training_name(row["run"])


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


def answer_questions(
    known: Mapping[str, Finding], questions: Iterable[Question]
) -> Iterator[tuple[str, Finding]]:
    """A question's heading and a claim whose number answers it, for all such claims."""
    for question in questions:
        for name in question.claims:
            if name in known:
                yield question.title, known[name]
