"""The meanings of columns, against the golden tables and figures."""

import csv
import io
import re

import pytest
from workflow_modules import load

from tests.golden.compare import read_copy


def is_explained(column: str, known: set[str]) -> bool:
    """Return whether a column, or the pattern that it follows, has a meaning."""
    name = re.sub(r"(?<=_)\d+$", "<share>", column)
    name = re.sub(r"^(enc_self|dec_self|dec_enc)(?=$|_layers|_share)", "<kind>", name)
    return name in known or re.sub("_(low|high|p|sd)$", "", name) in known


@pytest.mark.parametrize("experiment", ["tiny", "quickstart", "michel_bert"])
def test_every_column_has_a_meaning(monkeypatch, experiment):
    groups = load(monkeypatch, "pages.files_page").meanings().values()
    known = {name for group in groups for names in group for name in names.split(", ")}
    tables = {path: next(csv.reader(io.StringIO(text.decode())))
              for path, text in read_copy(experiment).items()}  # fmt: skip
    assert len(tables) > 5
    missing = {(path, name) for path, names in tables.items() for name in names
               if not is_explained(name, known)}  # fmt: skip
    assert not missing
    assert not is_explained("blue", known)
