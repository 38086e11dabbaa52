"""What the report opens with: the papers' claims that these results decide, with their evidence."""

import csv
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.findings.exhibits import FORMS, Exhibit
from headcount.findings.inputs import INPUTS
from headcount.findings.tables import p_value, with_bounds

LEDGER = "tables/claims.csv"
DECIDED = ("holds", "does not hold")
"""Verdicts that are findings; claims with others are listed with the reason why they are not."""

_BOUNDS = ("value", "low", "high")
_COLUMNS = ("claim", "paper", "place", "statement", "printed", "verdict", "reason", "statistic")
_COLUMNS += (*_BOUNDS, "p_adjusted", "seeds", "files", "paper_value", "difference", "collapsed")


class Finding(NamedTuple):
    """One claim of a paper, and what became of it here."""

    name: str  # such as HM-03
    verdict: str
    statement: str
    source: str  # paper and place in it
    numbers: str  # statistic and value, with interval, p and trainings; empty without a number
    printed: str  # by the paper; empty if it prints no number
    reason: str
    beside: list[str]  # statistic, the paper's value, ours, ours minus theirs; or nothing
    evidence: list[Exhibit]


def read_findings(ledger: Path, shown: Collection[Exhibit]) -> list[Finding]:
    """Every claim of a table `claims`; `shown` are the exhibits that evidence may be among.

    Empty if there is no such table. Raises UserError if it lacks a column.
    """
    if not ledger.exists():
        return []
    with ledger.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        lacking = [name for name in _COLUMNS if name not in (rows.fieldnames or [])]
        if lacking:
            raise UserError(
                f"{ledger}: expected the columns {', '.join(_COLUMNS)}; found none named "
                f"{', '.join(lacking)}; make the table again"
            )
        return [_finding(row, shown) for row in rows]


def read_main_findings(folder: Path, most: int) -> tuple[list[Finding], int]:
    """The first findings of an experiment's folder, so many at most, and how many there are."""
    decided = [each for each in read_findings(folder / LEDGER, ()) if each.verdict in DECIDED]
    return decided[:most], len(decided)


def read_warnings(exhibits: Iterable[Path]) -> list[str]:
    """What the JSON files of tables and figures warn of, each once, in the files' order."""
    told = (warning for file in exhibits for warning in read_json(file).get("warnings", []))
    return list(dict.fromkeys(told))


def _finding(row: dict[str, str], shown: Collection[Exhibit]) -> Finding:
    return Finding(
        row["claim"],
        row["verdict"],
        row["statement"],
        f"{row['paper']}, {row['place']}",
        _numbers(row),
        row["printed"],
        row["reason"],
        _beside(row),
        list(_evidence(row["files"].split(), row["place"].lower(), shown)),
    )


def _beside(row: dict[str, str]) -> list[str]:
    """The cells of a row that sets our number beside the paper's."""
    if not row["difference"]:
        return []
    theirs, apart = float(row["paper_value"]), float(row["difference"])
    failed = f" (collapsed: {row['collapsed']})" if row["collapsed"] else ""
    return [_statistic(row) + failed, f"{theirs:.2f}", _value(row), f"{apart:+.2f}"]


def _statistic(row: dict[str, str]) -> str:
    return row["statistic"][:1].upper() + row["statistic"][1:]


def _value(row: dict[str, str]) -> str:
    """Its value with the interval."""
    return with_bounds(*(float(row[name]) if row[name] else "" for name in _BOUNDS))


def _numbers(row: dict[str, str]) -> str:
    """The statistic in words, its value, interval and p, and on how many trainings it stands.

    Of a claim that is decided also which of these collapsed; of others the reason says it.
    """
    if not row["value"]:
        return ""
    found = f"{_statistic(row)}: {_value(row)}"
    if row["p_adjusted"]:
        p = p_value(float(row["p_adjusted"]))
        found += f", corrected p {p if p.startswith('<') else f'= {p}'}"
    found += f"; {row['seeds']} training{'s' if row['seeds'] != '1' else ''}"
    failed = row["collapsed"] if row["verdict"] in DECIDED else ""
    return f"{found}; collapsed: {failed}" if failed else found


def _evidence(files: list[str], place: str, shown: Collection[Exhibit]) -> Iterator[Exhibit]:
    """The exhibits that the files of a claim are of, or that are made from them; each once.

    Of several that are made from one file, that of the claim's own place in the paper, or else the
    one that is made from the fewest kinds, as that shows most of the file.
    """
    given = set()
    for name in files:
        path = PurePosixPath(*PurePosixPath(name).parts[1:])  # without the experiment
        found = [each for each in shown if _is_of(each, path)]
        found.sort(
            key=lambda each: (each.title.partition(":")[0].lower() not in place, len(each.needs))
        )
        given.update(found[:1])
    yield from (each for each in shown if each in given)


def _is_of(exhibit: Exhibit, path: PurePosixPath) -> bool:
    """Whether a file below the results is one of this exhibit, or of a kind that it needs."""
    if path.parts[0] in {folder.rstrip("/") for folder, _ in FORMS.values()}:
        return str(path.with_suffix("")) == exhibit.files[0].rpartition(".")[0]
    kinds = (INPUTS[kind] for kind in exhibit.needs)
    return any(kind.folder == path.parts[0] and path.name in kind.names for kind in kinds)
