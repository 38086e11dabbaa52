"""What an experiment's jobs have to do, by its settings alone."""

import subprocess
import sys

import pandas as pd
import pytest
from project_copy import ROOT
from workflow_modules import load

PAIR = "synthetic.en-art"
SIZES = {PAIR: {"train": 30000, "dev": 1000, "test": 1000}}


@pytest.fixture
def units(monkeypatch):
    """Units of every job of `quickstart`, whose model has 48 heads, by rule and job."""
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    workload = load(monkeypatch, "work").Workload(plan, SIZES)
    works = workload.works(["relevance", "importance", "roles"])
    return {(work.rule, work.job): dict(work.units) for work in works}


def test_a_training_has_its_updates_and_its_validations(units):
    """1,300 updates, a validation of 1,000 pairs every 100; Impt-N: 0.7 updates more for each."""
    plain = {"starts": 1, "updates": 1300, "forwards": 13 * 1000}
    assert units["train", f"{PAIR}.baseline"] == plain
    assert units["train", f"{PAIR}.impt-6"] == plain | {"updates": pytest.approx(1.7 * 1300)}
    assert units["scratch", f"{PAIR}.scratch-gates-all-l0.03"] == plain
    tuned = {"starts": 1, "updates": 100, "forwards": 4 * 1000}
    assert units["gates", f"{PAIR}.gates-all-l0"] == tuned


def test_masks_are_counted_once_each(units):
    """Of 8 ranked groups there are 8 sets and, either way, 6 unions; then no head, and all.

    Two random draws have 8 groups and 6 unions each; the baseline's ranking has sets of its own.
    """
    own = 8 + 6 + 6 + 2 + 2 * (8 + 6)
    assert own == 50  # as config/quickstart.yaml says
    assert units["masking", f"{PAIR}.baseline"]["translations"] == 200 * own
    assert units["masking", f"{PAIR}.impt-6"]["translations"] == 200 * (own + 8 + 6 + 6)


def test_ablation_has_every_head_on_both_texts(units):
    """60 sentences: on dev none, 48 single heads and 48 that stay alone; on test the best of 6."""
    found = units["ablation", f"{PAIR}.baseline"]["translations"]
    assert found == 60 * (1 + 48 + 48) + 60 * (1 + 48 + 6)


def test_text_is_cleaned_split_by_split(units):
    assert units["text", f"{PAIR}.train"] == {"starts": 1, "lines": 30000}
    assert units["translate", f"{PAIR}.train.baseline.test"]["translations"] == 1000


def test_a_budget_is_read_in_minutes_hours_and_days(monkeypatch):
    estimate = load(monkeypatch, "estimate")
    assert [estimate._seconds(text) for text in ("30m", "1.5h", "2d")] == [1800, 5400, 172800]
    with pytest.raises(Exception, match=r"expected a time such as 30m, 12h or 2d, found 'soon'"):
        estimate._seconds("soon")


def test_where_nothing_says_how_much_text_there_is_the_key_is_named(monkeypatch):
    sizes, plan = load(monkeypatch, "sizes"), load(monkeypatch, "plan")
    asked = plan.Plan({"experiment": "quickstart"}, [])
    found = asked.corpora["synthetic"].model_copy(update={"settings": None})
    asked.corpora["synthetic"] = found
    monkeypatch.setattr(asked.layout.__class__, "text", lambda *_: "nowhere")
    with pytest.raises(Exception, match=r"synthetic does not say how many pairs train has; name"):
        sizes.pairs_of(asked)


@pytest.mark.slow
def test_the_command_tells_jobs_rules_and_what_fits(tmp_path):
    """Its jobs are those of Snakemake's dry run."""
    asked = [sys.executable, str(ROOT / "workflow" / "estimate.py"), "tiny", "--until", "30m"]
    (tmp_path / "results").mkdir()
    for name in ("config", "workflow", "scripts", "src", "dvc.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "results" / "tiny" / "benchmarks" / "estimate.csv")
    jobs = int(done.stdout.split(" jobs")[0].split(": ")[1])
    assert table["jobs"].sum() == jobs
    dry = [sys.executable, "-m", "snakemake", "-n", "-F", "--config", "experiment=tiny"]
    planned = subprocess.run(dry, cwd=tmp_path, capture_output=True, text=True).stdout
    assert f"total{jobs + 1:>28}" in planned or f" {jobs + 1}\n" in planned  # rule all besides
    assert "in 30.0 m:\n  data: " in done.stdout and "report: " in done.stdout
