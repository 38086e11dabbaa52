"""The report: its text, its answers, and what a browser needs of the page."""

import re
import shutil
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from headcount.analysis.claims.claims import ledger
from headcount.analysis.figures.style import use_style, write_figure
from headcount.analysis.outputs import Chapter, Output, chapters
from headcount.analysis.report import page
from headcount.analysis.report.answers import answers
from headcount.analysis.report.page import by_question
from headcount.analysis.writer import Text, write_table
from headcount.base.errors import UserError

ORIGIN = {"command": ["x.py", "--a"], "code": {"digest": "0"}, "versions": {"python": "3"}}
CELLS = pd.DataFrame({"run": ["baseline"], "score": [1.5]})
FIELDS = {"module": "m", "chapter": "c", "function": "f"}
NAMED = ("name", "title", "form", "question", "needs", "beside")
OUTPUTS = [
    Output(**dict(zip(NAMED, values, strict=False)), **FIELDS)
    for values in (
        ("bleu", "Scores", "table", "training"),
        ("headmask_table5", "Table 5: variance", "table", "headmask", ["importance", "masks"]),
        ("headmask_fig5", "Figure 5", "figure", "headmask", ["masking"], "headmask_table5"),
    )
]
COLLAPSE, FEW, SHARED = "impt-2 collapsed.", "Fewer seeds for a.", "Model: a small one, of 6 heads."
CLAIM = {
    "claim": "HM-04", "paper": "Sun et al. 2020", "statement": "Masks help.", "statistic": "BLEU",
    "place": "section 2, figure 5", "limit": -0.5,
    "verdict": "holds", "value": 1.25, "low": 0.5, "high": 2, "p_adjusted": 0.004, "seeds": 3,
    "paper_value": 0.75, "difference": 0.5, "collapsed": "impt-2, seed 1 of a.x-y",
    "files": "one/tables/bleu.csv one/masking/a.x-y/impt-2/seed1/headmask.csv",
}  # fmt: skip
CLAIMS = [
    CLAIM,
    CLAIM | {"claim": "MI-06", "verdict": "undecided", "low": None, "high": None, "seeds": 1},
    CLAIM
    | {"claim": "VO-04", "verdict": "does not hold", "statement": "Few.", "value": -0.25}
    | {"low": -0.5, "high": 0.1, "difference": None, "collapsed": ""},
]


class Page:
    """Text, links, ids and requests of a page."""

    def __init__(self, path: Path):
        self.html = path.read_text()
        self.ids = re.findall(r' id="([^"]*)"', self.html)
        self.links = re.findall(r'<a [^>]*href="([^"]*)"', self.html)
        self.labels = re.findall(r'<img [^>]*alt="([^"]*)"', self.html)
        hidden = r"<(style|script)\b.*?</\1>"
        self.text = unescape(re.sub("<[^>]*>", " ", re.sub(hidden, "", self.html, flags=re.S)))


def plant(folder: Path, warnings=(COLLAPSE,), cells=CELLS, caption="Scores of <i>runs</i>."):
    """Write all outputs of an experiment and its claims."""
    texts = [Text(caption, [*warnings, FEW][:2], [SHARED, "One note."])]
    texts += [Text("Variances.", list(warnings), [SHARED]), Text("Curves.", [], ["Another note."])]
    for output, text in zip(OUTPUTS[:2], texts, strict=False):
        write_table(output, cells, text, folder / "tables", ORIGIN)
    use_style()
    figure = Figure(figsize=(3, 1))
    figure.subplots().plot([1, 2])
    write_figure(figure, OUTPUTS[2], cells, texts[2], folder / "figures", ORIGIN)
    pd.DataFrame(CLAIMS).to_csv(folder / "tables" / "claims.csv", index=False)


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    plant(folder)
    return folder


@pytest.fixture
def results(planted, tmp_path, monkeypatch) -> Path:
    chapter = Chapter(name="c", title="C", question="training", outputs=(*OUTPUTS,))
    monkeypatch.setattr(page, "chapters", lambda *_: [chapter])
    return Path(shutil.copytree(planted, tmp_path / "results" / "one"))


def report(*folders: Path, only=()) -> Page:
    out = folders[0] / "report.html"
    page.write_report({folder: f"Title {folder.name}" for folder in folders}, only, out)
    return Page(out)


def test_warnings_stand_first_and_beside_outputs_with_notes_claims_and_cells(results):
    text = " ".join(report(results).text.split())
    assert text.count(COLLAPSE) == 3 and text.count(FEW) == text.count(SHARED) == 2
    cells = ["1.5", "Masks help.", "1.25 (0.50 to 2.00), corrected p = 0.0040, 3 training runs"]
    assert all(words in text for words in [*cells, "One note.", "Another note."])


def test_f54_links_and_ids_are_there_and_text_is_escaped(results):
    (results / "atlas.html").write_text("<p>")
    made = report(results)
    files = [link for link in made.links if not link.startswith("#")]
    assert {"atlas.html", "tables/bleu.csv", "figures/headmask_fig5.pdf"} <= set(files)
    assert all((results / link).is_file() for link in files)
    assert made.labels == ["Figure 5", "Figure 5. Curves."]
    inside = {link[1:] for link in made.links if link.startswith("#")}
    assert inside <= {*made.ids} and len({*made.ids}) == len(made.ids)
    assert not re.search(r'\bsrc="(?!data:)|@import|url\(|href="[a-z]+:', made.html)
    plant(results, cells=CELLS.assign(run="<script>alert(1)</script>"), caption='A <b> "c".')
    html = report(results).html
    assert html.count("<script>") == 1 and "&lt;script&gt;alert(1)" in html
    assert "A &lt;b&gt; &#34;c&#34;." in html and "<b>" not in html


def test_several_experiments_stand_on_one_page(results, tmp_path):
    other = tmp_path / "results" / "two"
    plant(other, caption="Other scores.")
    made = report(results, other)
    assert {link[1:] for link in made.links if link.startswith("#")} <= set(made.ids)
    assert {"table-bleu-1", "table-bleu-2"} <= set(made.ids)
    assert {"tables/bleu.csv", "../two/tables/bleu.csv"} <= set(made.links)
    assert made.text.index("Scores of") < made.text.index("Other") < made.text.index("Variances")
    assert f"Title two: {COLLAPSE}" in made.text


def test_outputs_can_be_chosen_and_faults_are_named(results, tmp_path):
    made = report(results, only=["tables/bleu.json"])
    assert "table-bleu" in made.ids and "table-headmask_table5" not in made.ids
    with pytest.raises(UserError, match=r"blue.json: .* declared table or figure"):
        report(results, only=["tables/blue.json"])
    with pytest.raises(UserError, match="expected results of an experiment"):
        page.write_report({tmp_path: "Title"}, (), tmp_path / "r.html")
    (results / "tables" / "bleu.json").write_text('{"caption": "c", "provenance": {}}')
    with pytest.raises(UserError, match=r"bleu.json: .* make it again"):
        report(results)


def test_answers_name_claims_sections_and_figures_that_exist():
    verdicts = {"holds", "does not hold", "undecided"}
    figures = {item.name for chapter in chapters() for item in chapter.outputs}
    for answer in answers(pd.DataFrame(columns=[*CLAIM])):
        question = answer["question"]
        assert set(question["claims"]) <= set(ledger().claims)
        assert {*question["figures"]} <= figures
        assert all(verdicts < set(texts) for texts in question["claims"].values())
    both = pd.DataFrame([CLAIM | {"verdict": "undecided"}, CLAIM | {"claim": "HM-05"}])
    sentences = [answers(table)[0]["sentence"] for table in (both, both.head(1))]
    assert [sentence.partition(".")[0] for sentence in sentences] == ["Yes", "Undecided"]


def test_a_section_without_training_has_another_title_and_a_figure_follows_its_table():
    trained = {name: (title, outputs) for name, title, outputs in by_question(OUTPUTS[::-1])}
    assert trained["headmask"][1] == [OUTPUTS[1], OUTPUTS[2]]
    (_, title, _), (_, scores, _) = list(by_question([OUTPUTS[2], OUTPUTS[0]]))[::-1]
    assert title != trained["headmask"][0] and scores != trained["training"][0]
    with pytest.raises(KeyError, match="weather"):
        list(by_question([OUTPUTS[0].model_copy(update={"question": "weather"})]))
