"""Declarations of all outputs: functions, kinds of files and sections that exist."""

from importlib import import_module

import pytest

from headcount.analysis.frames import _parameters
from headcount.analysis.inputs import INPUTS, OWNERS
from headcount.analysis.outputs import SHOWN, Chapter, Output, chapters
from headcount.analysis.report.questions import by_question

OUTPUTS = [output for chapter in chapters() for output in chapter.outputs]


def arguments(function, given):
    """Yield the names of all arguments of a function, and of the functions that make them."""
    for name, (default, maker) in _parameters(function).items():
        if maker is not None:
            yield from arguments(maker, {})
        elif name not in given and name not in ("settings", "data") and default is not None:
            yield name


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.anchor)
def test_a_function_gets_its_arguments_from_the_kinds_that_are_declared(output):
    function = getattr(import_module(output.module), output.function)
    (chapter,) = (chapter for chapter in chapters() if chapter.name == output.chapter)
    kinds = {name for name in arguments(function, output.arguments) if name in INPUTS}
    assert kinds <= set(chapter.kinds)


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


def test_a_chapter_is_made_from_the_files_that_are_there():
    fields = {"module": "m", "chapter": "c", "function": "f", "title": "T", "form": "table"}
    scores = Output(name="scores", needs=["scored"], uses=["masks"], **fields)
    chapter = Chapter(name="c", title="C", question="training", outputs=(scores,))
    kinds = ["scores", "translations", "references"]
    assert scores.required == (*kinds,) and chapter.kinds == ["trained_runs", *kinds, "masks"]
    assert (
        chapter.made_from(kinds).outputs == (scores,) and not chapter.made_from(["masks"]).outputs
    )
    with pytest.raises(ValueError, match="weather"):
        Output(name="x", needs=["weather"], **fields)
