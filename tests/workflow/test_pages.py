"""Columns of result files in the reference, against declarations and real files."""

import csv
import re

import pytest
from project_copy import ROOT
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


def test_every_column_of_results_has_a_meaning(explained):
    columns = {column for kind in INPUTS.values() for column in kind.columns}
    assert len(columns) > 50 and unexplained(explained, columns) == set()


def test_no_meaning_is_of_a_column_that_nothing_writes(explained):
    files = [path for kind in ("py", "yaml") for path in (ROOT / "src").rglob(f"*.{kind}")]
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    words = set(re.findall(r"[a-z]+", source))  # some names are put together from words
    assert {word for name in explained for word in re.findall("[a-z]+", name)} <= words


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
