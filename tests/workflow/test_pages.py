"""Columns of result files in the reference, against declarations and real files."""

import csv
import re

import pytest
from workflow_modules import load

from headcount.analysis.inputs import INPUTS


@pytest.fixture
def page(monkeypatch):
    return load(monkeypatch, "pages")


@pytest.fixture
def explained(page) -> set[str]:
    return {n for group in page.meanings().values() for names in group for n in names.split(", ")}


def unexplained(explained: set[str], columns) -> set[str]:
    """Columns without a meaning. Bounds and p values have that of their column."""
    short = {column: re.sub("_(low|high|p)$", "", column) for column in columns}
    return {column for column in columns if not {column, short[column]} & explained}


@pytest.mark.slow
def test_real_files_have_the_columns_that_the_page_names(page, explained, origin):
    results = origin.folder / "results/quickstart"
    for path in results.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            columns = next(csv.reader(file))
        folder = path.relative_to(results).parts[0]
        kinds = [
            kind for kind in INPUTS.values() if (kind.folder, kind.names) == (folder, (path.name,))
        ]
        named = [re.sub(r"(?<=_)\d+$", "<share>", column) for column in columns]
        named = [re.sub(r"^(enc_self|dec_self|dec_enc)(?=$|_)", "<kind>", name) for name in named]
        assert not unexplained(explained, named), path
        assert all(set(kind.columns) <= set(columns) for kind in kinds), path
