"""Tables and figures from the small frozen measurements are the golden ones."""

import re

import pytest

from headcount.analysis.inputs import INPUTS
from headcount.analysis.outputs import ON_REQUEST, SHOWN, chapters
from tests.golden.__main__ import main
from tests.golden.compare import read_copy, read_sums, verdicts
from tests.golden.frozen import MANIFEST, archived, small

pytestmark = pytest.mark.slow  # tens of commands


FETCHED = {"savings", "many_pairs"}
"""Experiments on corpora that a test cannot fetch: `python -m tests.golden savings many_pairs`."""


@pytest.mark.parametrize("experiment", sorted({*small()} - FETCHED))
def test_the_small_experiments_make_their_golden_files(experiment, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["golden", experiment])
    assert main() == 0, capsys.readouterr().out
    assert re.search(r": [1-9]\d* files, 0 differ$", capsys.readouterr().out, re.M)


def test_a_change_a_loss_and_a_new_file_are_faults_and_a_last_digit_is_a_note():
    golden = read_copy("tiny")
    path = "tiny/tables/headmask_table5.csv"

    def compared(value: str) -> tuple[list[str], list[str]]:
        """The golden value is 0.125; 1e-9 of it is 1.25e-10."""
        made = golden | {path: f"mean\n{value}\n".encode()}
        return verdicts("tiny", made, lambda: {path: b"mean\n0.125\n"})

    note = f"{path}: equal within 1e-09 relative, last digits differ"
    assert compared("0.1250000001") == ([], [note])
    assert compared("0.1250000002") == ([f"{path}: row 2: 0.125 became 0.1250000002"], [])
    lost = {name: content for name, content in golden.items() if name != path}
    assert verdicts("tiny", lost, dict)[0] == [f"{path}: no longer made"]
    new = golden | {"tiny/tables/x.csv": b"a\n"}
    assert verdicts("tiny", new, dict)[0] == ["tiny/tables/x.csv: new"]


def test_every_table_and_figure_has_a_golden_sum():
    made = [chapter for chapter in chapters() if chapter.name not in ON_REQUEST]
    outputs = [item for chapter in made for item in chapter.outputs if item.form in SHOWN]
    alone = [item for item in outputs if any(INPUTS[k].owner == "alone" for k in item.required)]
    outputs = [item for item in outputs if item not in alone]  # no experiment has these
    names = {f"{item.form}s/{item.name}.csv" for item in outputs}
    assert {path.partition("/")[2] for path in read_sums()} == names and len(names) > 60


def test_every_experiment_with_sums_has_measurements_and_each_archive_a_command():
    assert {path.split("/")[0] for path in read_sums()} == {*small(), *archived()}
    rows = [row for rows in archived().values() for row in rows]
    assert len(rows) == 317 and MANIFEST.exists()
    assert all(
        row["restore"] == f"git checkout {row['kept_in']} -- {row['archive']}" for row in rows
    )
