"""The report, read as a browser reads it: contents, links, words for who cannot see, warnings."""

import csv
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from chapters import make_chapter
from headmask_files import MODEL, HeadmaskFiles, masking_rows
from matplotlib.figure import Figure

from headcount.analysis.claims.table import COLUMNS, FAILS, HOLDS
from headcount.base.errors import UserError
from headcount.base.settings.importance import ImportanceSettings
from headcount.findings.chapters import chapters
from headcount.findings.exhibits import SHOWN
from headcount.findings.figures import Drawn, use_style, write_figures
from headcount.findings.inputs import OF_TRAINING
from headcount.findings.report.drawings import inline_drawing
from headcount.findings.report.opening import DECIDED, read_findings
from headcount.findings.report.page import write_report
from headcount.findings.report.questions import QUESTIONS, by_question
from headcount.findings.report.shared_notes import share_notes
from headcount.findings.tables import Table, sides, write_tables

ORIGIN = {
    "command": ["x.py", "--a"],
    "code": {"digest": "0"},
    "versions": {"python": "3"},
    "settings": {"model": {"heads": 8}},
}
CELLS = pd.DataFrame({"run": ["baseline"], "score": [1.5]})
EXHIBITS = {
    each.anchor: each for chapter in chapters() for each in chapter.exhibits if each.form in SHOWN
}


class Page(HTMLParser):
    """What a test asks of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.links, self.headings, self.labels = [], [], [], []
        self.asked_for, self.text, self._open = [], "", []
        self.feed(path.read_text())
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), found.get("id")))
        if tag in ("svg", "img"):
            self.labels.append(found.get("aria-label") or found.get("alt"))
        self.asked_for += [found[name] for name in ("src", "srcset", "data") if name in found]
        address = found.get("href") or found.get("xlink:href") or "#"
        if tag in ("link", "image", "use") and not address.startswith("#"):
            self.asked_for.append(address)
        if tag not in ("meta", "br", "link", "img", "input", "hr"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


def write(folder: Path, name: str, caption="A table.", notes=(), warnings=(), cells=CELLS) -> None:
    table = Table(cells, cells, caption, notes, warnings)
    write_tables({name: table}, folder / "tables", ORIGIN)


def draw(folder: Path, name: str, caption="A map.", notes=()) -> None:
    use_style()
    figure = Figure(figsize=(3, 1))
    figure.subplots().plot([1, 2], marker="o")  # a marker is drawn once, and used by its id
    write_figures({name: Drawn(figure, CELLS, caption, notes)}, folder / "figures", ORIGIN)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Results that no test changes."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("michel_ablation", "headmask_table5", "bleu", "headmask_collapse"):
        write(folder, name, f"What {name} shows.", ("Model: small.", f"Only {name}."))
    draw(folder, "michel_ablation", notes=("Model: small.",))
    draw(folder, "headmask_frequency")
    return folder


@pytest.fixture
def results(made, tmp_path) -> Path:
    """A copy of them."""
    return Path(shutil.copytree(made, tmp_path / "results" / "one"))


def report(*folders: Path, only=()) -> Page:
    out = folders[0] / "report.html"
    write_report({folder: f"Title {folder.name}" for folder in folders}, only, out)
    return Page(out)


def test_contents_and_links_lead_to_what_is_there(results):
    page = report(results)
    inside = [link[1:] for link in page.links if link.startswith("#")]
    assert inside and set(inside) <= set(page.ids) and len(set(page.ids)) == len(page.ids)
    files = [link for link in page.links if not link.startswith("#")]
    assert "tables/bleu.csv" in files and "figures/michel_ablation.pdf" in files
    assert all((results / link).is_file() for link in files)


def test_headings_are_titles_in_order_and_a_figure_follows_its_table(results):
    page = report(results)
    depths = [depth for depth, _ in page.headings]
    assert depths[0] == 1 and depths.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(depths, depths[1:], strict=False))
    assert [name for _, name in page.headings if name] == [
        *("training", "table-bleu"),
        *("headmask", "table-headmask_table5"),
        *("table-headmask_collapse", "figure-headmask_frequency"),
        *("removal", "table-michel_ablation", "figure-michel_ablation"),
        *("settings", "origins"),
    ]
    assert "Table 5: variance of the importance of heads" in page.text
    assert "headmask_table5" not in re.sub(
        "Only headmask_table5|What headmask_table5", "", page.text
    )


def test_files_beside_are_linked_where_they_are(results):
    assert "atlas.html" not in report(results).links
    (results / "atlas.html").write_text("<p>")
    assert "atlas.html" in report(results).links


def test_nothing_is_asked_of_a_server(results):
    page = report(results)
    assert page.asked_for == []
    assert not [link for link in page.links if re.match("[a-z]+:", link)]
    written = (results / "report.html").read_text()
    assert "@import" not in written and not re.search(r"url\((?!#)", written)


def test_every_drawing_has_words_and_ids_of_its_own(results):
    page = report(results)
    assert page.labels == [
        "How often training masked each head. A map.",
        "Maps of BLEU without each head. A map.",
    ]
    written = (results / "report.html").read_text()
    used = re.findall('xlink:href="#(.*?)"', written) + re.findall(r"url\(#(.*?)\)", written)
    assert used and set(used) <= set(page.ids)


def test_notes_of_several_are_stated_once_and_linked(results):
    page = report(results)
    assert page.text.count("Model: small.") == 1 and page.text.count("Only bleu.") == 1
    assert page.links.count("#setting-1") == 5  # from four tables and a figure


def test_warnings_stand_at_the_top_and_at_their_table(results):
    """A collapse, planted; two tables that warn of the same share a line at the top."""
    collapse = "impt-2, seed 1 collapsed."
    write(results, "headmask_collapse", warnings=(collapse,))
    write(results, "headmask_table2", warnings=(collapse,))
    page = report(results)
    assert "#warnings" in page.links and page.text.count(collapse) == 3
    assert page.text.index(collapse) < page.text.index("What bleu shows.")
    assert page.links.count("#table-headmask_collapse-1") == 1
    assert "#warnings" not in report_without_warnings(results)


def report_without_warnings(results: Path) -> list[str]:
    write(results, "headmask_collapse")
    write(results, "headmask_table2")
    return report(results).links


def test_f54_the_page_escapes_what_it_is_given(results):
    cells = pd.DataFrame({"run": ["<script>alert(1)</script>"], "score": [1.5]})
    write(results, "bleu", "Scores & <i>more</i>.", cells=cells)
    draw(results, "curves", 'A <b> "caption".')
    write_report({results: "<title>"}, (), results / "report.html")
    page = (results / "report.html").read_text()
    assert page.count("<script>") == 1 and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Scores &amp; &lt;i&gt;more" in page and "A &lt;b&gt; &quot;caption&quot;" in page
    assert "<h1>&lt;title&gt;</h1>" in page and '<td class="right">1.50</td>' in page
    assert "x.py --a" in page and page.count("<metadata>") == 0


def test_two_experiments_stand_side_by_side(results, tmp_path):
    other = tmp_path / "results" / "two"
    write(other, "bleu", "Other scores.", ("Model: large.",))
    write(other, "corpus")
    page = report(results, other)
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids) and len(set(page.ids)) == len(page.ids)
    assert page.text.index("What bleu shows.") < page.text.index("Other scores.")
    assert page.text.index("Other scores.") < page.text.index("What headmask_table5 shows.")
    assert "../two/tables/bleu.csv" in page.links and "tables/bleu.csv" in page.links
    assert {"table-bleu-1", "table-bleu-2", "table-corpus-2"} <= set(page.ids)
    assert "Title one · Title two" in page.text


def test_what_is_shown_can_be_chosen(results):
    page = report(results, only=["tables/bleu.json"])
    assert "table-bleu" in page.ids and "table-michel_ablation" not in page.ids
    assert "settings" not in page.ids and "#settings" not in page.links  # one shares with none
    with pytest.raises(UserError, match="blue.json: expected a file of a declared table or figure"):
        report(results, only=["tables/blue.json"])
    with pytest.raises(UserError, match="corpus.json: expected the file of a table or figure"):
        report(results, only=["tables/corpus.json"])


def test_a_folder_without_results_and_older_results_are_refused(results, tmp_path):
    with pytest.raises(UserError, match="expected results of an experiment, tables/ or figures/"):
        write_report({tmp_path: "Title"}, (), tmp_path / "r.html")
    about = results / "tables" / "bleu.json"
    about.write_text('{"caption": "c", "provenance": {}}')
    with pytest.raises(UserError, match="bleu.json: .* found no warnings: .* older version"):
        write_report({results: "Title"}, (), tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


CLAIM = {
    "claim": "HM-02",
    "paper": "Sun et al.",
    "place": "section 2, figure 2",
    "statement": "Masking costs.",
    "printed": "delta: 0.3",
    "verdict": "holds",
    "reason": "so it is",
    "statistic": "area",
    "value": "44.5905",
    "low": "39.4816",
    "high": "49.4211",
    "p_adjusted": "0.0019",
    "seeds": "1",
    "files": "one/tables/michel_ablation.csv one/masking/a.en-xx/baseline/seed1/headmask.csv",
    "paper_value": "40.0905",
    "difference": "4.5",
    "collapsed": "",
}


def write_claims(folder: Path, *rows: dict[str, str]) -> Path:
    path = folder / "tables" / "claims.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(CLAIM))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_page_opens_with_what_is_decided_and_its_evidence(results):
    open_claim = CLAIM | {"verdict": "undecided", "reason": "one seed", "statement": "A method."}
    nothing = dict.fromkeys(("value", "low", "high", "files", "paper_value", "difference"), "")
    write_claims(results, CLAIM, open_claim | nothing)
    page = report(results)
    assert re.search(
        r"Area\s*40\.09\s*44\.59 \(39\.48 to 49\.42\)\s*\+4\.50\s*Sun et al", page.text
    )
    numbers = "Area: 44.59 (39.48 to 49.42), corrected p = 0.0019; 1 training."
    assert numbers in page.text and "Printed in the paper: delta: 0.3." in page.text
    assert page.text.index(numbers) < page.text.index("What bleu shows.")
    assert "Holds here: 1 of 2 claims" in page.text and "Undecided: one seed." in page.text
    assert "#table-michel_ablation-1" in page.links and "#findings" in page.links


def test_a_collapse_is_named_where_the_number_is(results):
    failed = CLAIM | {"collapsed": "impt-6, seed 1 of a.x-y"}
    told = failed | {"verdict": "undecided", "reason": "one seed; collapsed: impt-6"}
    decided, open_one = read_findings(write_claims(results, failed, told), [])
    assert decided.beside[0] == "Area (collapsed: impt-6, seed 1 of a.x-y)"
    assert decided.numbers.endswith("; 1 training; collapsed: impt-6, seed 1 of a.x-y")
    assert open_one.numbers.endswith("; 1 training")  # the page has the reason beside it


def test_evidence_is_the_exhibit_of_a_file_or_that_of_the_claims_place(results):
    shown = [EXHIBITS[name] for name in ("figure-headmask_fig1", "figure-headmask_fig2")]
    shown += [EXHIBITS["table-michel_ablation"], EXHIBITS["figure-michel_ablation"]]
    (found,) = read_findings(write_claims(results, CLAIM), shown)
    # Both figures need headmask.csv, and the claim stands in figure 2 of its paper.
    assert [each.anchor for each in found.evidence] == [
        "figure-headmask_fig2",
        "table-michel_ablation",
    ]
    # Of a place that is none of theirs: not the first, which needs masks and curves beside it.
    shown = [EXHIBITS["table-headmask_collapse"], EXHIBITS["figure-headmask_fig1"]]
    (found,) = read_findings(write_claims(results, CLAIM | {"place": "section 2"}), shown)
    assert [each.anchor for each in found.evidence] == ["figure-headmask_fig1"]
    path = results / "tables" / "claims.csv"
    path.write_text("claim,paper\nHM-02,Sun\n")
    with pytest.raises(UserError, match="expected the columns .* found none named place"):
        read_findings(path, shown)


def test_the_opening_reads_what_the_ledger_has():
    assert set(CLAIM) <= set(COLUMNS) and set(DECIDED) == {HOLDS, FAILS}


def test_every_exhibit_answers_a_question_and_stands_beside_a_table_of_the_same():
    for each in EXHIBITS.values():
        assert each.question in {question.name for question in QUESTIONS}
        if each.beside:
            assert each.form == "figure", each.name
            assert EXHIBITS[f"table-{each.beside}"].question == each.question, each.name
    placed = [each for _, found in by_question(EXHIBITS.values()) for each in found]
    assert sorted(placed, key=str) == sorted(EXHIBITS.values(), key=str)
    with pytest.raises(KeyError, match="weather"):
        list(by_question([replace(EXHIBITS["table-bleu"], question="weather")]))


@pytest.mark.slow
def test_an_imported_model_has_no_chapter_about_training(tmp_path):
    """Its files as the plan gives them: without those about a training, which an import has not."""
    run, results = ("multi.en-de", "baseline", 1), tmp_path / "one"
    files = HeadmaskFiles(tmp_path)
    files.runs.append(run)
    files.importance(run, [1.0, 2, 3, 4, 5, 9])
    files.masking(run, masking_rows(30.0, (10.0, 20.0), [12.0, 14.0]))
    files.masks(run, {})
    lists = {kind: found for kind, found in files.lists().items() if kind not in OF_TRAINING}
    settings = {"model": MODEL, "importance": ImportanceSettings()}
    tables, figures = make_chapter("headmask", lists, settings)
    assert set(figures) == {"headmask_fig1", "headmask_fig2", "headmask_heads"}
    write_tables(tables, results / "tables", ORIGIN)
    write_figures(figures, results / "figures", ORIGIN)
    write(results, "bleu")
    page = report(results)
    assert "Data and scores" in page.text and "HeadMask: which heads matter?" in page.text
    assert "does training" not in page.text and "Data and training" not in page.text
    write(results, "headmask_table5")  # needs the masks of a training
    assert "does training with masked heads help?" in report(results).text


def test_columns_of_numbers_stand_at_the_right():
    rows = [["a", "+0.5", "–", "< 0.001"], ["1b", "−3 (1 gain)", "2", ""]]
    assert sides(["name", "x", "y", "p"], rows) == ["left", "right", "right", "right"]


def test_a_drawing_scrolls_before_its_words_are_too_small():
    svg = '<?xml version="1.0"?>\n<svg width="300pt" id="a"><metadata>x</metadata></svg>'
    # 300 points are 400 pixels, of which 68 % are 272.
    assert inline_drawing(svg, "n", 'a "b"') == (
        '<svg role="img" aria-label="a &quot;b&quot;" style="min-width: 272px" '
        'width="300pt" id="n-a"></svg>'
    )


def test_shared_notes_are_told_by_their_first_words():
    blocks = [{"notes": ["One.", "a b c d e, f"]}, {"notes": ["a b c d e, f"]}]
    (shared,) = share_notes(blocks)
    assert (shared.number, shared.label) == (1, "a b c d e…")
    assert blocks == [{"notes": ["One."], "shared": [shared]}, {"notes": [], "shared": [shared]}]
