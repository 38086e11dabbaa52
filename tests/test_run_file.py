"""`run.json`: what stands in it, how it is read back, and as columns of a table."""

import json
import math

import pytest

from headcount.base.errors import UserError
from headcount.base.run_file import read_run, write_run
from headcount.base.settings.runs import BASELINE, PrunedSettings, RunSettings
from headcount.findings.run_tables import read_runs, run_table

IMPT = RunSettings(method="importance", heads=6, probability=0.5)
RANKED = PrunedSettings.model_validate("ranked-gates-enc_self-l0.02-from-impt-6-p0.5")


def write(folder, run, name, seed=1):
    place = folder / "a.x-y" / name / f"seed{seed}"
    write_run(place, run)
    return place / "run.json"


def test_every_key_of_a_run_stands_in_its_file(tmp_path):
    found = json.loads(write(tmp_path, IMPT, "impt-6-p0.5").read_text())
    assert set(found) == {"run", *RunSettings.model_fields} - {"share"}  # paths have the count
    assert (found["run"], found["method"], found["heads"]) == ("impt-6-p0.5", "importance", 6)
    assert (found["probability"], found["unit"], found["decay"]) == (0.5, "sentence", 0.0)
    found = json.loads(write(tmp_path, RANKED, "r").read_text())
    assert (found["method"], found["scope"], found["lambda"]) == ("importance", "enc_self", 0.02)
    assert found["run"] == "ranked-gates-enc_self-l0.02-from-impt-6-p0.5"
    assert found["from"]["heads"] == 6


@pytest.mark.parametrize("run", [BASELINE, IMPT, RANKED])
def test_a_run_is_read_back_as_it_was(tmp_path, run):
    assert read_run(write(tmp_path, run, "any")) == run


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"heads": 6', '"heads": 7', r"run\.json: expected the run impt-7-p0.5, .* 'impt-6-p0.5'"),
        ('"heads": 6', '"heds": 6', r"run\.json: expected the settings of a run; make the run aga"),
    ],
)
def test_a_file_that_is_no_runs_is_refused(tmp_path, old, new, told):
    path = write(tmp_path, IMPT, "impt-6-p0.5")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=told):
        read_run(path)


def test_settings_of_runs_are_columns(tmp_path):
    runs = {"baseline": BASELINE, "impt-6-p0.5": IMPT}
    files = [write(tmp_path, run, name, seed=2) for name, run in runs.items()]
    files.append(write(tmp_path, RANKED, "ranked-gates-enc_self-l0.02-from-impt-6-p0.5"))
    table = run_table(files)
    assert table["run"].tolist() == [path.parent.parent.name for path in files]
    assert table["seed"].tolist() == [2, 2, 1]
    assert table["heads"].tolist()[:2] == [0, 6] and math.isnan(table["heads"][2])
    assert table["method"].tolist() == ["baseline", "importance", "importance"]
    assert table.loc[2, ["scope", "lambda", "start"]].tolist() == ["enc_self", 0.02, "impt-6-p0.5"]
    assert math.isnan(table["lambda"][0])
    assert read_runs(files)["impt-6-p0.5"] == IMPT
