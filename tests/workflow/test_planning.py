"""A plan's work grows with its jobs and no faster: calls are counted, nothing is timed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import ProjectCopy

from benchmarks import planning
from headcount.base.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
COUNTED = ROOT / "tests/helpers/counted_calls.py"
MOST = 200
"""Calls of the project's own functions that one more job may cost: its flags, files, priority."""
JOB = ["--mode", "remote", "--cores", "1", "--target-jobs", "bpe:pair=synthetic_tiny.en-art"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _fingerprints(tmp_path_factory):
    """The first plan of a clone reads all of its code, and notes down what it found beside it."""
    counted(tmp_path_factory.mktemp("plan") / "first")


def counted(folder: Path, *arguments: str, **changed: object) -> dict[str, int]:
    """Calls of a dry run of `tiny` with other settings, where nothing is made."""
    folder.mkdir()
    copy = ProjectCopy.of(planning.project_with(folder, "tiny", **changed))
    command = ["python", str(COUNTED), "calls.json", "--dry-run", "--nolock", *arguments]
    printed = copy.call(*command, "--config", "experiment=tiny")
    total = next(line.split()[1] for line in printed.splitlines() if line.startswith("total "))
    return {"jobs": int(total)} | json.loads((folder / "calls.json").read_text())


def seeds(count: int) -> dict[str, object]:
    return {"seeds": [*range(1, count + 1)]}


def sweep(count: int) -> dict[str, object]:
    prices = [step / 100 for step in range(count)]
    return {"pruned": [{"method": "gates", "scope": "all", "lambda": prices}]}


@pytest.mark.parametrize(("settings", "sizes"), [(seeds, (1, 4, 7)), (sweep, (10, 20, 30))])
def test_the_second_step_takes_no_more_calls_than_the_first(tmp_path, settings, sizes):
    small, middle, large = (counted(tmp_path / str(n), **settings(n)) for n in sizes)
    jobs = middle["jobs"] - small["jobs"]
    assert large["jobs"] - middle["jobs"] == jobs > 0
    assert large["own"] - middle["own"] <= 1.01 * (middle["own"] - small["own"]) <= MOST * jobs
    if settings is seeds:  # rule pruned_roles lists the files of every λ, and Snakemake tries each
        assert large["all"] - middle["all"] <= 1.01 * (middle["all"] - small["all"])


def test_a_jobs_own_process_looks_for_no_other_jobs_files(tmp_path):
    """On a cluster every job has one, and each look is one at a disk that all share."""
    whole, own = counted(tmp_path / "whole"), counted(tmp_path / "own", *JOB)
    assert own["jobs"] == 5 < whole["jobs"]  # with what makes the text that it reads
    assert whole["integrity.settle"] == 1 and "integrity.settle" not in own


def test_the_benchmark_prints_what_each_plan_costs():
    told = ["--experiment", "tiny", "--sizes", "1", "2", "--repeats", "1"]
    # In a process of its own: what this one holds would count as memory of the plans.
    words = [sys.executable, "-m", "benchmarks.planning", *told]
    printed = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    row = r"\| (\d+) seeds? \| (\d+) \| (\d+\.\d) \| \d+\.\d \| (\d+) \|"
    rows = re.findall(row, printed)
    assert [int(seeds) for seeds, *_ in rows] == [1, 2]
    (_, few, *_), (_, more, *_) = rows
    assert int(few) < int(more) < 2 * int(few)  # the text, tables and figures are made once
    for *_, seconds, megabytes in rows:
        assert 0.5 < float(seconds) < 60 and 50 < float(megabytes) < 1000


def test_the_benchmark_tells_why_there_is_no_plan():
    with pytest.raises(UserError, match="--experiment nix: expected .*nix.yaml, found no such"):
        planning.cost("nix", seeds=[1])
    with pytest.raises(UserError, match=r"(?s)expected a plan of tiny, found:.*seeds.*0"):
        planning.cost("tiny", seeds=[])
