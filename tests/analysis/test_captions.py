"""Captions, notes and warnings."""

from importlib import import_module

import pandas as pd
import pytest

from headcount.analysis.captions import NOTES, describe, shared_notes, unequal_seeds
from headcount.analysis.frames import Data
from headcount.analysis.outputs import Output, chapters
from headcount.base.settings.heads import ImportanceSettings

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


def test_unequal_seeds_are_a_warning():
    (warning,) = unequal_seeds(FRAME)
    assert "b (1)" in warning and "2" in warning
    assert unequal_seeds(FRAME[FRAME["seed"] == 1]) == []


def test_every_declared_note_and_warning_exists():
    outputs = [output for chapter in chapters() for output in chapter.outputs]
    for output in outputs:
        import_module(output.module)  # notes of a module are registered with it
    known = {*NOTES, *shared_notes()}
    for output in outputs:
        for entry in [*output.notes, *output.warnings]:
            assert " " in entry or entry in known, (output.name, entry)
