"""Two folders of results, compared as a reviewer would."""

import subprocess
import sys

import pytest
from script_runner import ROOT, run_file

CURVE = "step,dev_loss,seconds\n1,{loss},{seconds}\n"


@pytest.fixture
def two(tmp_path):
    """Folders with the same results, made at another speed."""
    for name, seconds in (("old", 3), ("new", 4)):
        run = tmp_path / name / "train" / "seed1"
        run.mkdir(parents=True)
        (run / "weights.safetensors").write_bytes(b"\0\1")
        (run / "curves.csv").write_text(CURVE.format(loss="0.50", seconds=seconds))
        (tmp_path / name / "speed.csv").write_text(f"model,mean\nbaseline,{seconds}\n")
        (run / "model.json").write_text(f'"{name}"')
    return tmp_path


@pytest.fixture
def compare(two, capsys):
    """Exit code and lines of the command, in this process."""

    def compared() -> tuple[int, list[str]]:
        code = run_file("workflow/compare.py", [two / "old", two / "new"])
        printed = capsys.readouterr()
        return code, (printed.out + printed.err).splitlines()

    return compared


def test_time_is_no_difference(two):
    """The command in a process of its own, as a person starts it."""
    command = [sys.executable, ROOT / "workflow/compare.py", two / "old", two / "new"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "3 files in both\n")


def test_a_digit_a_byte_a_missing_and_a_new_file_are_differences(two, compare):
    run = two / "new" / "train" / "seed1"
    (run / "curves.csv").write_text(CURVE.format(loss="0.5", seconds=3))
    (run / "weights.safetensors").write_bytes(b"\0\2")
    (two / "new" / "speed.csv").rename(two / "new" / "times.csv")
    assert compare() == (
        1,
        [
            f"speed.csv: missing from {two / 'new'}",
            f"times.csv: not in {two / 'old'}",
            "train/seed1/curves.csv: differs",
            "train/seed1/weights.safetensors: differs",
            "2 files in both",
        ],
    )


def test_a_mean_is_time_in_tables_of_speed_alone(two, compare):
    for name, value in (("old", 1), ("new", 2)):
        (two / name / "headmask_table6.csv").write_text(f"run,mean\nbaseline,{value}\n")
    assert compare() == (1, ["headmask_table6.csv: differs", "4 files in both"])
