"""The page of one experiment's results, made from its tables; its main findings elsewhere."""

import csv
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.files import read_json, write_text
from headcount.base.templates import fill_page
from headcount.findings.chapters import chapters
from headcount.findings.exhibits import Exhibit
from headcount.findings.report.answers import answer_headmask, answer_questions
from headcount.findings.report.opening import DECIDED, LEDGER, Finding, read_findings
from headcount.findings.report.questions import by_question, questions_of
from headcount.findings.tables import plain_markdown

COST = "tables/cost.csv"
SHOWN = {
    "tables/corpus",
    "tables/bleu",
    "figures/headmask_fig5",
    "tables/headmask_table5",
    "tables/headmask_collapse",
    "tables/headmask_foreseen",
    "tables/headmask_locked",
    "figures/headmask_locked_fig",
    "tables/headmask_regularisation",
    "figures/headmask_regularisation",
    "tables/headmask_variants",
    "figures/headmask_variants",
    "figures/michel_pruning",
    "tables/michel_pruning",
    "tables/voita_table2",
    "tables/voita_falls",
    "figures/voita_fig9",
    "tables/cost",
}
"""What the page shows beside the claims; what an experiment lacks is left out."""

_TEMPLATE = Path(__file__).with_suffix(".md")
_BEGIN, _END = "<!-- findings: made by scripts/results_page.py -->\n", "<!-- findings: end -->\n"


def write_results_page(
    results: Path,
    made: dict[str, str],
    short: Sequence[str],
    out: Path,
    kept: Sequence[dict[str, Any]] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Write the page of a folder of results, and its pictures into the folder of its name beside.

    `made` has the words for `machine`, `date` and `commit`, which no file of results knows; `short`
    names the claims that the page begins with, after what HeadMask gained; `kept`: a row of words
    for each run, where runs were made apart, and `warnings` on how they differ. Returns the claims,
    as a list in Markdown below a line on the run. Raises UserError if the results lack table
    `claims` or `cost`, or one of these claims.
    """
    known = {each.name: each for each in read_findings(results / LEDGER, ())}
    if not known:
        raise UserError(f"{results / LEDGER}: expected the table of claims; snakemake makes it")
    lacking = [name for name in short if name not in known]
    if lacking:
        raise UserError(f"{lacking[0]}: expected a claim of {results / LEDGER}, found none")
    ledger = read_json((results / LEDGER).with_suffix(".json"))
    bullets = [answer_headmask(results), *(_bullet(known[name], lead=True) for name in short)]
    listed = "\n".join(filter(None, bullets))
    minutes, exhibits = _minutes(results / COST), _exhibits(results)
    of = {
        verdict: [each for each in known.values() if each.verdict == verdict]
        for verdict in (*DECIDED, "undecided")
    }
    values = made | {
        "experiment": results.name,
        "code": ledger["provenance"]["code"]["digest"],
        "packages": ", ".join(f"{k} {v}" for k, v in ledger["provenance"]["versions"].items()),
        "minutes": minutes,
        "kept": kept,
        "warnings": warnings,
        "short": listed,
        "answers": list(answer_questions(known, questions_of(exhibits))),
        "counts": ledger["caption"],
        "undecided": of.pop("undecided"),
        "decided": of,
        "questions": [
            (question.title, [_shown(each, results, out.with_suffix("")) for each in found])
            for question, found in by_question(exhibits)
        ],
        "bullet": _bullet,
        "numbers": _numbers,
        "cell": plain_markdown,
    }
    write_text(out, fill_page(_TEMPLATE, values))
    took = f"its jobs took {minutes} minutes, added up"
    return f"`{results.name}` on {made['machine']}, {made['date']}; {took}:\n\n{listed}\n"


def put_findings(page: Path, listed: str) -> None:
    """Write a list into a page, between its two marks. Raises UserError if it lacks them."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise UserError(f"{page}: expected the lines {_BEGIN!r} and {_END!r}; put them in")
    write_text(page, before + begin + listed + end + after)


def _minutes(cost: Path) -> int:
    """What all jobs took, one after the other."""
    if not cost.exists():
        raise UserError(f"{cost}: expected the table of what jobs took; snakemake makes it")
    with cost.open(encoding="utf-8", newline="") as file:
        total = next(row for row in csv.DictReader(file) if row["rule"] == "all")
    return round(float(total["seconds"]) / 60)


def _bullet(finding: Finding, lead: bool = False) -> str:
    """One claim with its numbers as an entry of a list; with its verdict first, if it leads."""
    verdict = f"**{finding.verdict.capitalize()}:** " if lead else ""
    printed = f" Printed in the paper: {finding.printed}." if finding.printed and not lead else ""
    return f"- {verdict}{finding.statement} {_numbers(finding)}.{printed} *{finding.source}.*"


def _numbers(finding: Finding) -> str:
    """The numbers of a claim; of one that is not decided the reason, too."""
    reason = "" if finding.numbers and finding.verdict in DECIDED else finding.reason
    return "; ".join(filter(None, (finding.numbers, reason)))


def _exhibits(results: Path) -> list[Exhibit]:
    """Those of `SHOWN` that are there, and of figures those that draw something of this run."""
    known = (each for chapter in chapters() for each in chapter.exhibits)
    named = (each for each in known if each.files[-1].removesuffix(".json") in SHOWN)
    return [each for each in named if (results / each.files[-1]).exists() and _ours(each, results)]


def _ours(exhibit: Exhibit, results: Path) -> bool:
    """Whether an exhibit has more than a paper's numbers; of tables their rows tell it."""
    if exhibit.form == "table":
        return True
    with (results / exhibit.files[-1]).with_suffix(".csv").open(encoding="utf-8") as file:
        return any(row.get("source", "ours") == "ours" for row in csv.DictReader(file))


def _shown(exhibit: Exhibit, results: Path, pictures: Path) -> dict[str, Any]:
    """Title, caption, warnings and Markdown of an exhibit; its picture is copied.

    Notes are those of a figure, which say what its marks are: a table's columns have names.
    """
    facts = results / exhibit.files[-1]
    found = read_json(facts)
    notes = " ".join(found["notes"]) if exhibit.form == "figure" else ""
    if exhibit.form == "table":
        shown = facts.with_suffix(".md").read_text(encoding="utf-8").split("\n\n")[-1].strip()
    else:
        pictures.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(facts.with_suffix(".png"), pictures / f"{facts.stem}.png")
        shown = f"![{exhibit.title}]({pictures.name}/{facts.stem}.png)"
    told = {key: found[key] for key in ("caption", "warnings")} | {"notes": notes}
    return {"title": exhibit.title, "shown": shown, "name": exhibit.name} | told
