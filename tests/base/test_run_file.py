"""`run.json`: what stands in it, how it is read back, and by the names of runs."""

import json

import pytest

from headcount.analysis.frames import read_runs
from headcount.base.errors import UserError
from headcount.base.settings.runs import read_run, write_run
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.training_runs import BASELINE, RunSettings

IMPT = RunSettings(method="importance", heads=6, probability=0.5)
TWO_HEADS = RunSettings(method="baseline", attention_heads=2)
FROM_NONE = PrunedSettings.model_validate("gates-enc_self-l0.02-from-none")
RANKED = PrunedSettings.model_validate("ranked-gates-enc_self-l0.02-from-impt-6-p0.5")


def write(folder, run, name, seed=1):
    place = folder / "a.x-y" / name / f"seed{seed}"
    write_run(place, run)
    return place / "run.json"


def test_every_key_of_a_run_stands_in_its_file(tmp_path):
    found = json.loads(write(tmp_path, IMPT, "impt-6-p0.5").read_text())
    assert set(found) == {"run", *RunSettings.model_fields} - {
        "share",
        "attention_heads",
        "dropout",
        "spare",
        "held_in",
    }  # of 12.5% the count
    assert (found["run"], found["method"], found["heads"]) == ("impt-6-p0.5", "importance", 6)
    assert (found["probability"], found["unit"], found["decay"]) == (0.5, "sentence", 0.0)
    found = json.loads(write(tmp_path, TWO_HEADS, "baseline-h2").read_text())
    assert (found["run"], found["method"]) == ("baseline-h2", "baseline")
    assert found["attention_heads"] == 2
    found = json.loads(write(tmp_path, RANKED, "r").read_text())
    assert (found["method"], found["scope"], found["lambda"]) == ("importance", "enc_self", 0.02)
    assert found["run"] == "ranked-gates-enc_self-l0.02-from-impt-6-p0.5"
    assert found["from"]["heads"] == 6
    assert json.loads(write(tmp_path, FROM_NONE, "n").read_text())["from"] == "none"


@pytest.mark.parametrize("run", [BASELINE, TWO_HEADS, IMPT, RANKED, FROM_NONE])
def test_a_run_is_read_back_as_it_was(tmp_path, run):
    assert read_run(write(tmp_path, run, "any")) == run


@pytest.mark.parametrize("run", [IMPT, RANKED])  # a training run, and one that starts from it
def test_a_key_that_was_off_and_is_gone_leaves_the_run_readable(tmp_path, run):
    path = write(tmp_path, run, "any")
    older = path.read_text().replace('"signed"', '"centred": false, "signed"')
    path.write_text(older)
    assert "centred" in older and read_run(path) == run
    path.write_text(older.replace('"centred": false', '"centred": true'))
    with pytest.raises(UserError, match=r"run\.json: expected the settings of a run"):
        read_run(path)


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


def test_settings_are_read_by_name_from_files_of_all_pairs_and_seeds(tmp_path):
    runs = {"baseline": BASELINE, "impt-6-p0.5": IMPT}
    files = [write(tmp_path, run, name, seed) for name, run in runs.items() for seed in (1, 2)]
    assert read_runs(files) == runs


def test_a_folder_with_the_name_of_another_run_is_refused(tmp_path):
    path = write(tmp_path, IMPT, "impt-6")
    with pytest.raises(UserError, match=r"run\.json: expected the run impt-6, found impt-6-p0\.5"):
        read_runs([path])
