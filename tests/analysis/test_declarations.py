"""Declarations of all outputs: functions, kinds of files and sections that exist."""

from importlib import import_module
from inspect import Parameter

import pytest

from headcount.analysis.frames import _parameters
from headcount.analysis.inputs import INPUTS, OWNERS
from headcount.analysis.outputs import SHOWN, chapters
from headcount.analysis.report.page import by_question

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
