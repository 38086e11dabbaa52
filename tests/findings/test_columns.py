"""What is told of the columns of result files, held against what writes them."""

import csv
import re
from collections.abc import Iterable

import pytest
from chapters import make_tables
from project_copy import ROOT
from test_pictures import PLANTED, chapter_of
from workflow_modules import load

from headcount.analysis.claims import table
from headcount.findings.general import corpora, heads_per_layer, scores
from headcount.findings.inputs import INPUTS

UNMADE = {"benchmarks", "estimate", "exhibits"}  # by any one rule
OTHERS = {"benchmarks", "exhibits", "measures"}  # no columns of their own


@pytest.fixture
def page(monkeypatch):
    return load(monkeypatch, "files_page")


def explained(page) -> set[str]:
    groups = [*page.meanings().values(), page.work.UNITS]
    return {name for group in groups for names in group for name in names.split(", ")}


def unexplained(page, columns: Iterable[str]) -> set[str]:
    """Those of these columns that workflow/columns.yaml does not have."""
    known, found = explained(page), set()
    for column in columns:
        name = re.sub(r"(?<=_)\d+$", "<share>", column)
        name = re.sub(r"^(enc_self|dec_self|dec_enc)(?=$|_layers|_share)", "<kind>", name)
        if name not in known and re.sub("_(low|high|p)$", "", name) not in known:
            found.add(column)
    return found


def test_a_column_without_a_meaning_is_found(page):
    columns = ["bleu", "kept_low_40", "dec_enc_share", "pearson_p", "blue", "kept_40_low"]
    assert unexplained(page, columns) == {"blue", "kept_40_low"}


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTED[1:], ids=lambda plant: plant.__name__)
def test_every_column_of_the_tables_has_a_meaning(page, plant, tmp_path):
    tables = make_tables(chapter_of(plant), *plant(tmp_path))
    assert tables and not unexplained(
        page, {name for each in tables.values() for name in each.tidy}
    )


def test_every_kind_of_files_has_its_rules_and_columns(page):
    for name, kind in INPUTS.items():
        assert bool(page.makers(kind)) == (name not in UNMADE), name
        rows = kind.names[0].endswith(("csv", "tsv")) and name not in OTHERS
        assert bool(page.columns(kind)) == rows, name
    told = [scores.COLUMNS, heads_per_layer.COLUMNS, corpora.COLUMNS, table.COLUMNS]
    told += page.WRITTEN.values()
    assert not unexplained(page, {name for columns in told for name in columns})


def test_rules_are_found_by_their_outputs(page):
    """Of a list of names, of `multiext`, of another rule's, and where two folders have the name."""
    kinds = ("kept", "classifier_areas", "pruned_syntax", "scores", "attention", "curves")
    assert [page.makers(INPUTS[kind]) for kind in kinds] == [
        ["gates", "subset", "gates_from_none", "scratch", "fine_tune"],
        ["classifier_ablation"],
        ["pruned_roles"],
        ["bleu"],
        ["roles"],
        ["imported_run", "train"],
    ]


def test_no_meaning_is_of_a_column_that_nothing_writes(page):
    files = [*ROOT.joinpath("src").rglob("*.py"), ROOT / "workflow/announce.py"]
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    words = set(re.findall(r"[a-z]+", source))  # some names are put together from words
    told = {word for name in explained(page) for word in re.findall("[a-z]+", name)}
    assert told <= words and "bleu" in told


@pytest.mark.slow
def test_real_files_have_the_columns_that_the_page_names(page, origin):
    results = origin.folder / "results/quickstart"
    for path in results.rglob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            columns = next(csv.reader(file))
        folder = path.relative_to(results).parts[0]
        named = [
            n for n, each in INPUTS.items() if (each.folder, each.names) == (folder, (path.name,))
        ]
        assert not unexplained(page, columns), path
        assert all(list(page.columns(INPUTS[name])) == columns for name in named), path
