"""Declarations of all outputs: functions, kinds of files, notes and the meanings of columns."""

import csv
import io
import re
from importlib import import_module
from inspect import Parameter

import pandas as pd
import pytest
from workflow_modules import load

from headcount.analysis import outputs
from headcount.analysis.captions import NOTES, describe, shared_notes, unequal_seeds
from headcount.analysis.frames import Data, _parameters
from headcount.analysis.inputs import INPUTS, OWNERS
from headcount.analysis.outputs import SHOWN, Output, chapters
from headcount.analysis.report.page import by_question
from headcount.base.settings.heads import ImportanceSettings
from tests.golden.compare import read_copy

OUTPUTS = [output for chapter in chapters() for output in chapter.outputs]


def unknown(function, given):
    """Return the names of arguments that nothing provides, of a function and of its makers."""
    names = set()
    for name, (default, maker) in _parameters(function).items():
        if maker is not None:
            names |= unknown(maker, {})
        elif default is Parameter.empty:
            names |= {name} - {*given, *INPUTS, "settings", "data"}
    return names


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.anchor)
def test_a_function_exists_and_something_provides_its_arguments(output):
    function = getattr(import_module(output.module), output.function)
    assert unknown(function, output.arguments) == set()


def test_files_are_unique_and_sections_exist():
    files = [file for output in OUTPUTS for file in output.files]
    assert len(set(files)) == len(files) > 200
    assert {kind.owner for kind in INPUTS.values()} <= set(OWNERS)
    shown = [output for output in OUTPUTS if output.form in SHOWN]
    placed = [output for _, _, outputs in by_question(shown) for output in outputs]
    assert sorted(output.anchor for output in placed) == sorted(o.anchor for o in shown)
    tables = {output.name: output for output in shown if output.form == "table"}
    for figure in (output for output in shown if output.beside):
        assert tables[figure.beside].question == figure.question and figure.form == "figure"


FRAME = pd.DataFrame({"pair": "p", "run": ["a", "a", "b"], "seed": [1, 2, 1], "source": "ours"})


def described(**fields):
    base = {"name": "f", "module": "m", "chapter": "c", "form": "table", "title": "T"}
    data = Data({}, {"importance": ImportanceSettings()})
    return describe(Output(**base, function="f", **fields), FRAME, data)


def test_notes_are_names_sentences_and_placeholders():
    notes = ["over_seeds", "Unit: {importance_unit}.", "over_seeds", "A plain sentence."]
    text = described(caption="A caption.", notes=notes)
    assert text.caption == "A caption."
    assert text.notes[0] == shared_notes()["over_seeds"]
    assert text.notes[1].startswith("Unit: nats") and len(text.notes) == 3
    with pytest.raises(KeyError, match="no_such_note"):
        described(caption="A caption.", notes=["no_such_note"])
    (warning,) = unequal_seeds(FRAME)
    assert "b of p" in warning and "(1)" in warning
    assert unequal_seeds(FRAME[FRAME["seed"] == 1]) == []


def test_every_declared_note_and_warning_exists():
    for output in OUTPUTS:
        import_module(output.module)  # notes of a module are registered with it
    entries = {entry for output in OUTPUTS for entry in [*output.notes, *output.warnings]}
    assert {entry for entry in entries if " " not in entry} <= {*NOTES, *shared_notes()}


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


def test_entries_take_defaults_of_their_file_and_of_the_entry_they_are_like(declared):
    table, figure = declared["headmask"]
    assert (table.form, figure.form, figure.name) == ("table", "figure", "scores")
    assert table.needs == figure.needs == ["curves"]
    assert (table.question, figure.question) == ("masks", "headmask")
    table, figure = declared["cost"]
    assert (table.title, table.function, table.name) == ("Other scores", "scores", "a_scores")
    assert table.module.endswith("tables.tables") and table.question == "masks"
    assert table.csv == {"score": "bleu", "pair": "corpus"}
    assert figure.needs == ["masks"] and figure.form == "figure"
    assert (figure.draw.style, figure.draw.x) == ("run", {"label": "tokens"})


def is_explained(column: str, known: set[str]) -> bool:
    """Return whether a column, or the pattern that it follows, has a meaning."""
    name = re.sub(r"(?<=_)\d+$", "<share>", column)
    name = re.sub(r"^(enc_self|dec_self|dec_enc)(?=$|_layers)", "<kind>", name)
    return name in known or re.sub("_(low|high|p|sd)$", "", name) in known


@pytest.mark.parametrize("experiment", ["tiny", "quickstart", "michel_bert"])
def test_every_column_has_a_meaning(monkeypatch, experiment):
    groups = load(monkeypatch, "pages").meanings().values()
    known = {name for group in groups for names in group for name in names.split(", ")}
    tables = {path: next(csv.reader(io.StringIO(text.decode())))
              for path, text in read_copy(experiment).items()}  # fmt: skip
    assert len(tables) > 5
    missing = {(path, name) for path, names in tables.items() for name in names
               if not is_explained(name, known)}  # fmt: skip
    assert not missing
    assert not is_explained("blue", known)
