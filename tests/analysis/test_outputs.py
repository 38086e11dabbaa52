"""Declarations: defaults of a file, and entries completed from others."""

import pytest

from headcount.analysis import outputs

TABLES = """
chapter: headmask
defaults: {form: table, needs: [curves], csv: {score: bleu}}
outputs:
  scores:
    title: Scores
    function: scores
    question: masks
  scores (figure):
    form: figure
    title: Curves
    function: curves
    draw: {style: run, x: {label: updates}}
"""
LIKE = """
chapter: cost
defaults: {csv: {pair: corpus}}
outputs:
  a_scores: {like: scores, title: Other scores}
  b_curves: {like: scores (figure), needs: [masks], draw: {x: {label: tokens}}}
"""


@pytest.fixture
def declared(tmp_path, monkeypatch):
    (tmp_path / "tables.yaml").write_text(TABLES)
    (tmp_path / "like.yaml").write_text(LIKE)
    monkeypatch.setattr(outputs, "_TABLES", tmp_path)
    monkeypatch.setattr(outputs, "chapters", outputs.chapters.__wrapped__)
    return {chapter.name: chapter.outputs for chapter in outputs.chapters()}


def test_an_entry_takes_the_defaults_of_its_file(declared):
    table, figure = declared["headmask"]
    assert (table.form, figure.form, figure.name) == ("table", "figure", "scores")
    assert table.needs == figure.needs == ["curves"]
    assert (table.question, figure.question) == ("masks", "headmask")


def test_an_entry_is_completed_from_the_one_it_is_like(declared):
    table, figure = declared["cost"]
    assert (table.title, table.function, table.name) == ("Other scores", "scores", "a_scores")
    assert table.module.endswith("tables.tables") and table.question == "masks"
    assert table.csv == {"score": "bleu", "pair": "corpus"}
    assert figure.needs == ["masks"] and figure.form == "figure"
    assert (figure.draw.style, figure.draw.x) == ("run", {"label": "tokens"})
