"""A small BERT on pairs of MultiNLI's shape: planned, fine-tuned and ablated by both engines."""

import csv
import json
import shutil

import pytest
from project_copy import ProjectCopy, planned, ran
from shared_results import QUIET, leave_figures_empty
from small_bert import WORDS, pairs, save_bert, write_pairs

from headcount.base.errors import UserError

CORPUS = """
small:
  licence: made here
  citation: this project
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
resources: {device: cpu}
fine_tuning: {epochs: 10, batch: 50, peak_lr: 3e-3}
classifier_ablation: {steps: 3, draws: 1}
"""
AGAIN = {"classifier_ablation": 2, "general": 1, "michel_classifiers": 1}
AGAIN |= {"claims": 1, "cost": 1, "report": 1}
"""Jobs after a change of what is ablated."""
JOBS = {"fetch_classifier": 2, "download": 1, "entailment": 1, "fine_tune_classifier": 1}
JOBS |= {**AGAIN, "atlas": 1}


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
    page = (copy.folder / "results" / "small" / "report.html").read_text()
    atlas = (copy.folder / "results" / "small" / "atlas.html").read_text()
    assert "measures no heads of its own models" in atlas and "<script" not in atlas
    assert "Effects of single heads of classifiers" in page and "dev (100 pairs)" in page
    copy.change("config/small.yaml", "draws: 1", "draws: 2")
    assert ran(copy.shell("snakemake --cores 2 --config experiment=small")) == AGAIN
    assert ran(copy.call("dvc", "repro")) == {}
    shutil.rmtree(copy.folder / "data" / "raw")  # as after `dvc pull`, by who has no model here
    shutil.rmtree(copy.folder / "own")
    code, output = copy.run("-n", "--config", "experiment=small")
    assert code == 0 and QUIET in output and "own/bert/config.json: expected a file" in output


HUB = "classifiers: {models: {bert: {hub: a/b, revision: %s}}}" % ("0a" * 20)


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        (
            "classifiers:\n  corpus: multi30k\n  models: {a: {path: own}}",
            "config/mine.yaml:2: classifiers.corpus: ",
        ),
        ("classifiers: {corpus: multinil, models: {a: {path: own}}}", "nearest: multinli"),
        ("classifiers: {models: {a: {path: own}}}", "own/config.json: expected a file of your own"),
        ("classifiers: {models: {a: {hub: b}}}", "expected hub and revision, or path"),
        (HUB.replace("0a" * 20, "main"), "mine.yaml:1: classifiers.models.bert.revision: "),
        (HUB.replace("}}}", ", labels: [x]}}}"), "mine.yaml:1: classifiers.models.bert.labels: "),
    ],
)
def test_f09_classifiers_that_cannot_be_are_refused(plan_of, experiment, message):
    with pytest.raises(UserError, match=message):
        plan_of(experiment)
