"""The page of an experiment's results, from planted tables; the README's findings."""

import re
from pathlib import Path

import pandas as pd
import pytest
from script_runner import ROOT, run_script

from headcount.base.errors import UserError
from headcount.findings.claims.ledger import claims
from headcount.findings.claims.table import COLUMNS
from headcount.findings.report.page import write_report
from headcount.findings.report.questions import QUESTIONS
from headcount.findings.report.results_page import put_findings, write_results_page
from headcount.findings.tables import NONE, Table, write_tables

ORIGIN = {"command": ["x.py"], "code": {"digest": "c0de"}, "versions": {"python": "3"}}
HELD = {"claim": "HM-03", "paper": "HeadMask", "place": "section 2", "statement": "Masking costs."}
HELD |= {"verdict": "holds", "reason": "areas", "statistic": "area, a minus b", "value": 46.03421}
HELD |= {"low": 41.2, "high": 50.7, "p": 0.001, "p_adjusted": 0.002, "seeds": 1}
OPEN = {"claim": "VO-12", "paper": "Voita", "place": "section 6", "statement": "Heads | can go."}
OPEN |= {"verdict": "undecided", "reason": "one < seed", "statistic": "change"}


@pytest.fixture
def results(tmp_path) -> Path:
    """Two claims, one of them without a number; 90 seconds of jobs; a table of scores."""
    ledger = pd.DataFrame([HELD, OPEN], columns=COLUMNS).astype(object).fillna("")
    scores = pd.DataFrame({"run": ["baseline"], "score": [1.5]})
    cost = pd.DataFrame({"rule": ["train", "all"], "seconds": [80.0, 90.0]})
    tables = {
        "claims": Table(ledger, ledger[["claim"]], "Of 2 claims 1 holds."),
        "bleu": Table(scores, scores, "Scores.", (), ("One is low.",)),
        "cost": Table(cost, cost, "Seconds."),
    }
    write_tables(tables, tmp_path / "mine" / "tables", ORIGIN)
    return tmp_path / "mine"


def write(results: Path, short: list[str]) -> tuple[str, str]:
    out = results.parent / "page.md"
    made = {"machine": "a lathe", "date": "2026-11-23", "commit": "abc1234"}
    return write_results_page(results, made, short, out), out.read_text()


def test_a_page_warns_above_what_it_says_in_short(results):
    out = results.parent / "warned.md"
    made = {"machine": "a lathe", "date": "2026-11-23", "commit": "abc1234"}
    write_results_page(results, made, ["HM-03"], out, warnings=["train: 2 versions", "two"])
    told = "\n\n!!! warning\n\n    - train: 2 versions\n    - two\n\n## In short\n\n"
    assert told in out.read_text()


def test_the_page_has_what_the_tables_say(results):
    _, page = write(results, ["HM-03"])
    assert (
        "| machine | a lathe |" in page and "| commit that trained the models | abc1234 |" in page
    )
    assert "| time of all jobs together | 2 minutes |" in page
    assert "| code of table `claims` | c0de |" in page
    finding = (
        "Masking costs. Area, a minus b: 46.03 (41.20 to 50.70), corrected p = 0.0020; 1 training."
    )
    assert page.count(finding) == 2 and f"- **Holds:** {finding}" in page
    assert r"| Heads \| can go. (Voita, section 6) | one &lt; seed |" in page
    assert "Scores.\n\n!!! warning\n\n    - One is low.\n\n| run" in page and "1.50 |" in page


@pytest.mark.parametrize(
    ("name", "numbers", "shown"),
    [
        ("voita_fig9", "source,value\npaper,1\n", False),
        ("voita_fig9", "source,value\npaper,1\nours,2\n", True),
        ("headmask_locked_fig", "pair,run\n", False),
        ("headmask_locked_fig", "pair,run\na.x-y,impt-6\n", True),
    ],
)
def test_a_figure_without_a_number_of_the_run_is_left_out(results, name, numbers, shown):
    figure = results / "figures" / name
    figure.parent.mkdir()
    figure.with_suffix(".png").write_bytes(b"png")
    figure.with_suffix(".csv").write_text(numbers)
    words = '{"caption": "Drawn.", "warnings": [], "notes": ["Bars: a < b.", "Dotted: c."]}'
    figure.with_suffix(".json").write_text(words)
    _, page = write(results, ["HM-03"])
    assert (f"](page/{name}.png)" in page) is shown and ("Drawn." in page) is shown
    notes = f"](page/{name}.png)\n\n<small>Bars: a &lt; b. Dotted: c.</small>\n"
    assert (notes in page) is shown


def test_notes_of_a_table_stay_in_the_report(results):
    scores = pd.DataFrame({"run": ["baseline"], "score": [1.5]})
    table = {"bleu": Table(scores, scores, "Scores.", ("How they were measured.",))}
    write_tables(table, results / "tables", ORIGIN)
    _, page = write(results, ["HM-03"])
    assert "Scores." in page and "How they" not in page and "<small>" not in page


def test_the_page_answers_whether_headmask_helped(results):
    columns = ["pair", "test set", "run", "source", "difference", "95 % interval"]
    rows = [
        ("a.x-y", "test", "baseline", "ours", "–", "–"),
        ("a.x-y", "test", "baseline-d0.1", "ours", "+2.00", "+1.00 to +3.00"),  # masks no head
        ("a.x-y", "test", "random-6", "ours", "-1.00", "-2.00 to +0.50"),
        ("a.x-y", "test", "impt-6", "ours", "-9.00", "-9.50 to -8.50"),
        ("b.y-x", "test", "impt-6", "ours", "+1.00", "+0.50 to +1.50"),
        ("c.y-x", "test", "impt-6", "paper", "+0.25", "–"),
    ]
    scores = pd.DataFrame(rows, columns=columns)
    trained = [("a.x-y", "impt-6", "yes"), ("b.y-x", "impt-6", "no"), ("b.y-x", "impt-6", "yes")]
    failed = pd.DataFrame(trained, columns=["pair", "run", "collapsed"])
    tables = {"headmask_table2": scores[:4], "headmask_table3": scores, "headmask_collapse": failed}
    made = {name: Table(table, table, "Shown.") for name, table in tables.items()}
    write_tables(made, results / "tables", ORIGIN)
    listed, page = write(results, ["HM-03"])
    answer = (
        "- **Did training with masked heads help BLEU here?** Difference to the baseline, with its "
        "95 % interval, on test of a.x-y: random-6 -1.00 (-2.00 to +0.50), impt-6 (collapsed) "
        "-9.00 (-9.50 to -8.50); test of b.y-x: impt-6 (1 of 2 trainings collapsed) "
        "+1.00 (+0.50 to +1.50). Intervals are over test sentences of one training each: they do "
        "not say what others would give."
    )
    assert listed.splitlines()[2] == answer and page.count(answer) == 1
    assert page.index(answer) < page.index("- **Holds:**")

    def tested(cells):
        shown = scores.assign(**{"p (t-test)": cells})
        names = ("headmask_table2", "headmask_table3")
        write_tables(
            dict.fromkeys(names, Table(scores, shown, "Shown.")), results / "tables", ORIGIN
        )

    tested("0.1")
    assert "Intervals" not in write(results, ["HM-03"])[0]
    tested([NONE if run == "random-6" else "0.1" for run in scores["run"]])
    assert (
        "Intervals of random-6 are over test sentences of one training each: "
        in (write(results, ["HM-03"])[0])
    )


def test_masks_with_a_dropout_of_their_own_are_compared_with_as_much_dropout(results):
    """To the baseline, without dropout, +2.00 would be told of masks that lose 1.00."""
    columns = ["pair", "test set", "run", "source", "difference", "95 % interval", "p (t-test)"]
    rows = [
        ("a.x-y", "test", "random-6", "ours", "+0.50", "+0.20 to +0.80", "0.01"),
        ("a.x-y", "test", "random-6-d0.3", "ours", "+2.00", "+1.50 to +2.50", "0.01"),
        ("a.x-y", "test", "random-6-d0.4", "ours", "+2.50", "+1.50 to +3.50", "0.01"),
    ]
    scores = pd.DataFrame(rows, columns=columns)
    head = {"pair": "a.x-y", "test_set": "test", "run": "random-6-d0.3", "value": -1.0}
    head |= {"against": "baseline-d0.3", "low": -1.25, "high": -0.75}
    told = [("bleu", "same dropout"), ("bleu", "baseline"), ("dev_loss", "same dropout")]
    alike = pd.DataFrame([head | {"statistic": what, "reference": to} for what, to in told])
    alike.loc[1:, "value"] = 2.0
    tables = {"headmask_table2": scores, "headmask_regularisation": alike}
    made = {name: Table(table, table, "Shown.") for name, table in tables.items()}
    write_tables(made, results / "tables", ORIGIN)
    assert (
        "Difference to the baseline, or to the run of as much dropout that is named, with its 95 % "
        "interval, on test of a.x-y: random-6 +0.50 (+0.20 to +0.80), random-6-d0.3 -1.00 (-1.25 "
        "to -0.75) to baseline-d0.3, random-6-d0.4, without a run of as much dropout to compare it "
        "with.\n" in write(results, ["HM-03"])[0]
    )
    one_seed = {
        "headmask_table2": scores[1:2],
        "headmask_regularisation": alike.drop(columns=["low", "high"]).assign(low="", high=""),
    }
    made = {name: Table(table, table, "Shown.") for name, table in one_seed.items()}
    write_tables(made, results / "tables", ORIGIN)
    assert (
        "Difference to the run of as much dropout that is named, with its 95 % interval, on test "
        "of a.x-y: random-6-d0.3 -1.00 (one training, no interval) to baseline-d0.3.\n"
        in write(results, ["HM-03"])[0]
    )


def test_forecasts_stand_beside_the_heads_that_they_foretell(results):
    cells = pd.DataFrame({"run": ["impt-6"], "lock-ins": ["4"]})
    names = ("headmask_foreseen", "headmask_locked", "headmask_locked_heads")
    made = {name: Table(cells, cells, f"Caption of {name}.") for name in names}
    write_tables(made, results / "tables", ORIGIN)
    _, page = write(results, ["HM-03"])
    places = [page.index(f"Caption of {name}.") for name in names[:2]]
    between = page[slice(*places)]
    assert len(re.findall("^### ", between, re.M)) == 1 and "| impt-6 " in between
    assert "headmask_locked_heads" not in page  # one row per head: in the report alone
    other = results.parent / "other"
    write_tables(made, other / "tables", ORIGIN | {"settings": {}})
    write_report({other: "other"}, (), results.parent / "report.html")
    report = (results.parent / "report.html").read_text()
    assert all(f"Caption of {name}." in report for name in names)


def test_each_question_is_answered_decided_or_not(results):
    _, page = write(results, ["HM-03"])
    title = "Pruning by gates: how many heads does a model need?"
    assert f"| {title} | Heads \\| can go. | Undecided. one &lt; seed |" in page
    named = [name for question in QUESTIONS for name in question.claims]
    assert len(set(named)) == len(named) and set(named) < set(claims())


def test_the_findings_begin_with_where_they_come_from(results):
    listed, _ = write(results, ["VO-12", "HM-03"])
    lines = listed.splitlines()
    assert lines[0] == "`mine` on a lathe, 2026-11-23; its jobs took 2 minutes, added up:"
    assert lines[2] == "- **Undecided:** Heads | can go. one < seed. *Voita, section 6.*"
    assert lines[3].startswith("- **Holds:** Masking costs.") and "areas" not in lines[3]


def test_what_lacks_is_named(results):
    with pytest.raises(UserError, match=r"^HM-99: expected a claim of .*claims.csv, found none"):
        write(results, ["HM-99"])
    for name in ("cost", "claims"):
        (results / "tables" / f"{name}.csv").unlink()
        with pytest.raises(UserError, match=f"{name}.csv: expected the table"):
            write(results, ["HM-03"])
    page = results / "page.md"
    page.write_text("no marks")
    with pytest.raises(UserError, match="expected the lines"):
        put_findings(page, "- x\n")


def test_the_script_writes_the_page_and_the_findings_into_another(results):
    page = results / "README.md"
    begin, end = marks()
    page.write_text(f"before\n{begin}\nbygone\n{end}\nafter\n")
    flags = [
        "--results",
        results,
        "--machine",
        "a lathe",
        "--date",
        "2026-11-23",
        "--commit",
        "abc1234",
    ]
    flags += ["--short", "HM-03", "--into", page, "--out", results / "page.md"]
    assert run_script("results_page", flags) == 0
    text = page.read_text()
    assert "bygone" not in text and "- **Holds:** Masking costs." in text
    assert text.startswith(f"before\n{begin}\n`mine` on a lathe") and text.endswith(
        f"{end}\nafter\n"
    )


def marks() -> list[str]:
    return re.findall(r"^<!-- findings.*-->$", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_the_readme_has_the_findings_of_the_page_of_quickstart():
    begin, end = marks()
    shown = (ROOT / "README.md").read_text().partition(begin)[2].partition(end)[0]
    page = (ROOT / "docs/results/quickstart.md").read_text()
    rows = dict(re.findall(r"^\| (machine|date|time of all jobs together) \| (.*) \|$", page, re.M))
    took = f"its jobs took {rows['time of all jobs together']}, added up"
    assert f"`quickstart` on {rows['machine']}, {rows['date']}; {took}:" in shown
    findings = re.findall(r"^- .*$", shown, re.MULTILINE)
    assert len(findings) >= 3
    assert all(f"{each}\n" in page.partition("## The papers' claims")[0] for each in findings)
