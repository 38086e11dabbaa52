"""A small BERT on pairs of MultiNLI's shape: planned, fine-tuned and ablated by both engines."""

import csv
import json
import shutil

import pytest
from project_copy import ROOT, ProjectCopy, planned, ran
from shared_results import QUIET, leave_figures_empty
from small_bert import WORDS, pairs, save_bert, write_pairs
from workflow_modules import load

CORPUS = """
small:
  licence: made here
  citation: this project
  pairs: {train: 3100, matched: 60, mismatched: 60}
  length: 4
  entailment:
    train: {path: own/train.jsonl}
    matched: {path: own/matched.jsonl}
    mismatched: {path: own/mismatched.jsonl}
"""
EXPERIMENT = """
title: A small BERT
classifiers:
  corpus: small
  dev_pairs: 100
  models:
    learnt: {path: own/bert}
    drawn: {path: own/bert, fine_tune: false}
fine_tuning: {epochs: 10, batch: 50, peak_lr: 3e-3, device: cpu}
classifier_ablation: {steps: 3, draws: 1, device: cpu}
"""
JOBS = {"fetch_classifier": 2, "download": 1, "entailment": 1, "fine_tune_classifier": 1}
JOBS |= {
    "classifier_ablation": 2,
    "general": 1,
    "michel_classifiers": 1,
    "claims": 1,
    "atlas": 1,
    "cost": 1,
    "report": 1,
}
CLASSIFYING = ("entailment", "fine_tune_classifier", "classifier_ablation")


@pytest.fixture
def copy(tmp_path) -> ProjectCopy:
    """A project whose one experiment has classifiers and no pairs."""
    made = ProjectCopy(tmp_path / "copy")
    own = made.folder / "own"
    (own / "bert").mkdir(parents=True)
    save_bert(own / "bert")
    write_pairs(own / "train.jsonl", pairs(3100, seed=1))
    write_pairs(own / "matched.jsonl", pairs(60, seed=2))
    write_pairs(own / "mismatched.jsonl", pairs(60, seed=3, words=WORDS[:6]))
    corpora = made.folder / "config" / "corpora.yaml"
    corpora.write_text(corpora.read_text() + CORPUS)
    (made.folder / "config" / "small.yaml").write_text(EXPERIMENT)
    made.change("dvc.yaml", "experiments: [quickstart]", "experiments: [small]")
    leave_figures_empty(made)
    return made


@pytest.mark.slow
def test_classifiers_alone_are_an_experiment_of_both_engines(copy):
    code, output = copy.run("-n", "--config", "experiment=small")
    assert code == 0 and planned(output) == JOBS, output
    copy.call("git", "init", "-q", "-b", "main")
    copy.commit()
    assert ran(copy.call("dvc", "repro")) == JOBS
    code, output = copy.run("-n", "--config", "experiment=small")
    assert code == 0 and QUIET in output, output
    metrics = json.loads((copy.folder / "results/small/metrics.json").read_text())["small"]
    # Whoever guesses is right half of the time, and 60 pairs then give 75 % once in 10,000 times.
    assert metrics["learnt"]["matched"]["accuracy"] > 75 > metrics["drawn"]["matched"]["accuracy"]
    tables = copy.folder / "results" / "small" / "tables"
    rows = list(csv.DictReader((tables / "michel_classifier_ablation.csv").open()))
    models = {(row["corpus"], row["model"], row["seed"]) for row in rows}
    assert models == {("small", "learnt", "1"), ("small", "drawn", "1")}
    cost = {row["rule"]: row for row in csv.DictReader((tables / "cost.csv").open())}
    assert all(float(cost[rule]["estimated_seconds"]) > 0 for rule in CLASSIFYING)
    page = (copy.folder / "results" / "small" / "report.html").read_text()
    atlas = (copy.folder / "results" / "small" / "atlas.html").read_text()
    assert "measures no heads of its own models" in atlas and "<script" not in atlas
    assert "Effects of single heads of classifiers" in page and "dev (100 pairs)" in page
    copy.change("config/small.yaml", "draws: 1", "draws: 2")
    again = {
        "classifier_ablation": 2,
        "general": 1,
        "michel_classifiers": 1,
        "claims": 1,
        "cost": 1,
    }
    again |= {"report": 1}
    assert ran(copy.shell("snakemake --cores 2 --config experiment=small")) == again
    assert ran(copy.call("dvc", "repro")) == {}
    shutil.rmtree(copy.folder / "data" / "raw")  # as after `dvc pull`, by who has no model here
    shutil.rmtree(copy.folder / "own")
    code, output = copy.run("-n", "--config", "experiment=small")
    assert code == 0 and QUIET in output and "own/bert/config.json: expected a file" in output


def plan_of(monkeypatch, folder, experiment: str, dry: bool):
    """The plan of an experiment in a folder with nothing but the settings, and no library."""
    plan, classifiers = load(monkeypatch, "plan"), load(monkeypatch, "classifiers")
    monkeypatch.setattr(classifiers, "find_spec", lambda name: None)
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "own.yaml").write_text(experiment)
    shutil.copy(ROOT / "config" / "corpora.yaml", folder / "config")
    monkeypatch.chdir(folder)
    return plan.Plan({"experiment": "own"}, [], dry=dry)


HUB = "classifiers: {models: {bert: {hub: a/b, revision: %s}}}" % ("0a" * 20)


def test_a_missing_library_is_told_before_the_first_job_and_not_in_a_dry_run(
    monkeypatch, tmp_path, capsys
):
    made = plan_of(monkeypatch, tmp_path, HUB, dry=True)
    assert made.classifiers.fine_tuned == ["bert"] and made.classifiers.corpora == ["multinli"]
    with pytest.raises(SystemExit) as end:
        plan_of(monkeypatch, tmp_path, HUB, dry=False)
    assert end.value.code == 3
    assert "found no transformers and no accelerate; pip install -e '.[bert]'" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "changed, told",
    [
        (
            "classifiers:\n  corpus: multi30k\n  models: {a: {path: own}}",
            "error: config/own.yaml:2: classifiers.corpus: multi30k has no labelled",
        ),
        ("classifiers: {corpus: multinil, models: {a: {path: own}}}", "nearest: multinli"),
        (
            "seeds: [1]\npairs: [multi30k.en-xx]",
            "error: config/own.yaml:2: pairs: multi30k.en-xx: corpus multi30k has no language 'xx'",
        ),
        (
            "pairs: [multi30k.en-de]\nseeds: [1]\nmasking:\n  test_sets: [x]",
            "error: config/own.yaml:4: masking.test_sets: no pair has a test set 'x'",
        ),
        ("classifiers: {models: {a: {path: own}}}", "own/config.json: expected a file of your own"),
        ("classifiers: {models: {a: {hub: b}}}", "expected hub and revision, or path"),
        (HUB.replace("0a" * 20, "main"), "expected a whole commit, 40 digits and letters a to f"),
        (HUB.replace("}}}", ", labels: [x]}}}"), "a fine-tuned model has those of the corpus"),
    ],
)
def test_f09_what_no_job_could_do_is_told(monkeypatch, tmp_path, capsys, changed, told):
    with pytest.raises(SystemExit) as end:
        plan_of(monkeypatch, tmp_path, changed, dry=False)
    assert end.value.code == 2 and told in capsys.readouterr().err
