"""What an experiment's jobs have to do, by its settings alone."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pandas as pd
import pytest
from project_copy import ROOT, link_project
from workflow_modules import load

from headcount.base.settings.data import BpeSettings
from headcount.base.settings.experiment import experiment_names, load_experiment
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE, RunSettings

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
    """1,000 updates, a validation of 1,000 pairs every 100; Impt-N: 0.7 updates more for each."""
    plain = {"starts": 1, "updates": 1000, "forwards": 10 * 1000}
    assert units["train", f"{PAIR}.baseline"] == plain
    assert units["train", f"{PAIR}.impt-6"] == plain | {"updates": pytest.approx(1.7 * 1000)}
    both = {"starts": 1, "updates": 1000 + 120, "forwards": 12 * 1000}
    assert units["scratch", f"{PAIR}.scratch-gates-all-l0.03"] == both
    tuned = {"starts": 1, "updates": 120, "forwards": 5 * 1000}
    assert units["gates", f"{PAIR}.gates-all-l0"] == tuned


def test_masks_are_counted_once_each(units):
    """Of 8 ranked groups there are 8 sets and, either way, 6 unions; then no head, and all.

    Two random draws have 8 groups and 6 unions each; the baseline's ranking has sets of its own.
    """
    own = 8 + 6 + 6 + 2 + 2 * (8 + 6)
    assert own == 50  # as config/quickstart.yaml says
    assert units["masking", f"{PAIR}.baseline"]["translations"] == 125 * own
    assert units["masking", f"{PAIR}.impt-6"]["translations"] == 125 * (own + 8 + 6 + 6)


def test_the_loss_without_each_head_is_a_pass_for_each_and_one_with_all(units):
    """On the 1,000 pairs of importance."""
    assert units["loss_change", f"{PAIR}.baseline"]["forwards"] == 49 * 1000


def test_without_batch_sizes_nothing_is_timed(monkeypatch):
    """Experiments ask for timing where a claim needs it; `tiny` goes through every rule."""
    plans = load(monkeypatch, "plan")
    plan = plans.Plan({"experiment": "quickstart"}, [])
    assert plan.ablated == ["baseline"] and plan.timed == []
    assert plan.pruned and plan.pruning.timed() == []
    found = ((name, load_experiment(name, plans.CONFIG)) for name in experiment_names(plans.CONFIG))
    asking = {name for name, settings in found if settings.speed.batch_sizes}
    assert asking == {"michel_wmt", "multi30k", "multi30k_short", "tiny"}


def test_ablation_has_every_head_on_both_texts(units):
    """60 sentences: on dev none, 48 single heads and 48 that stay alone; on test the best of 6."""
    found = units["ablation", f"{PAIR}.baseline"]["translations"]
    assert found == 60 * (1 + 48 + 48) + 60 * (1 + 48 + 6)


def test_runs_with_other_heads_are_counted_by_their_own(monkeypatch):
    """Six attention layers of one head: one alone in its layer is the whole model.

    Of two heads, all but one of a layer are the other one alone: 12 sets and the whole model.
    """
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    runs = [RunSettings.model_validate(f"baseline-h{heads}") for heads in (1, 2)]
    ablation = plan.settings.ablation.model_copy(update={"runs": runs})
    changed = {"runs": [BASELINE, *runs], "ablation": ablation}
    plan.settings = plan.settings.model_copy(update=changed)
    plan.pruning = load(monkeypatch, "pruning").Pruning(plan.layout, plan.settings)
    works = load(monkeypatch, "work").Workload(plan, SIZES).works(["importance"])
    found = {(work.rule, work.job): work.units for work in works}
    plain = {"starts": 1, "updates": 1000, "forwards": 10 * 1000}
    for heads, sets in ((1, 1 + 6), (2, 1 + 12)):
        assert found["train", f"{PAIR}.baseline-h{heads}"] == plain
        assert ("importance", f"{PAIR}.baseline-h{heads}") in found
        of_run = found["ablation", f"{PAIR}.baseline-h{heads}"]
        assert of_run["translations"] == 60 * sets + 60 * sets  # of dev and of test


@pytest.mark.parametrize(("again", "rankings"), [(False, 1), (True, 4)])
def test_heads_of_checkpoints_are_ranked_once_or_before_each_step(monkeypatch, again, rankings):
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    asked = {"updates": [100, 200], "steps": 4, "reestimate": again}
    ablation = plan.settings.ablation.model_copy(update=asked)
    plan.settings = plan.settings.model_copy(update={"ablation": ablation})
    workload = load(monkeypatch, "work").Workload(plan, SIZES)
    wildcards = {"pair": PAIR, "run": "baseline"}
    found = workload._masked("training_profile", wildcards)
    assert found["passes"] == 2 * rankings * workload._drawn(wildcards)


@pytest.mark.parametrize(
    ("device", "processes", "at_once"),
    [("cpu", 1, 8), ("cpu", 2, 4), ("cuda", 1, 4), ("cuda", 8, 1)],
)
def test_a_training_of_several_processes_takes_the_place_of_several(
    monkeypatch, device, processes, at_once
):
    """Of 16 cores, two for each process, or of 4 GPUs."""
    found = object.__new__(load(monkeypatch, "estimate").Estimate)
    train = TrainSettings(threads=2, processes=processes, accumulate=8)
    found.plan = SimpleNamespace(settings=SimpleNamespace(train=train))
    found.training, found.sizes = train, SIZES
    found.machine = SimpleNamespace(device=device)
    assert found.workers(cores=16, gpus=4) == at_once


def test_text_is_cleaned_split_by_split(units):
    assert units["text", f"{PAIR}.train"] == {"starts": 1, "lines": 30000}
    assert units["translate", f"{PAIR}.train.baseline.test"]["translations"] == 1000
    assert units["bleu", f"{PAIR}.train.baseline"] == {"starts": 1}


CLASSIFIERS = """
classifiers:
  corpus: small
  dev_pairs: 100
  models: {learnt: {path: own}, drawn: {path: own, fine_tune: false}}
fine_tuning: {epochs: 10}
classifier_ablation: {steps: 1, draws: 0}
"""
LABELLED = """
small:
  {licence: mine, citation: this, pairs: {train: 3100, matched: 60, mismatched: 50}, length: 5,
   entailment: {train: {path: a}, matched: {path: a}, mismatched: {path: a}}}
"""
SIZES_OF_BERT = {"num_hidden_layers": 2, "hidden_size": 24, "intermediate_size": 48}


def test_classifiers_have_the_operations_of_their_layers(monkeypatch, tmp_path):
    """Two layers of 4 · 24² + 2 · 24 · 48 = 4,608 weights with 3 heads; pairs of 2 · 5 + 3 = 13.

    Trained: 3,000 pairs, ten times, padded to 26. A pair goes through both layers once for all
    masks, then through both where the first masked layer is the lower one, else through one: on a
    test set no mask (1), six single heads (3 · 2 + 3 · 1), one alone in each layer (2 + 1); on dev
    each of six alone (9) instead. In steps on matched: no head (1), all (2), all but one of each
    layer (2). Forward is a third of training; importance, two thirds, is measured on dev once.
    """
    plan, work = load(monkeypatch, "plan"), load(monkeypatch, "work")
    monkeypatch.chdir(tmp_path)
    for folder in ("config", "own"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config" / "own.yaml").write_text(CLASSIFIERS)
    (tmp_path / "config" / "corpora.yaml").write_text(LABELLED)
    told = {**SIZES_OF_BERT, "num_attention_heads": 3}
    (tmp_path / "own" / "config.json").write_text(json.dumps(told))
    found = work.Workload(plan.Plan({"experiment": "own"}, [], dry=True), {})
    units = {(each.rule, each.job): each.units for each in found.works([])}
    weight = 6e-12 * 4608
    tuned = units["fine_tune_classifier", "small.learnt"]["teraflops"]
    assert tuned == pytest.approx(weight * 2 * 3000 * 10 * 26)
    test, dev, steps = 2 + 1 + 9 + 3, 2 + 1 + 9 + 9, 2 + 1 + 2 + 2
    forward = 100 * dev + 60 * (test + steps) + 50 * test
    masked = weight * 13 * (forward / 3 + 2 / 3 * 100 * 2)
    for name in ("learnt", "drawn"):
        ablated = units["classifier_ablation", f"small.{name}"]
        assert ablated == {"starts": 1, "teraflops": pytest.approx(masked)}
    assert units["entailment", "small"]["lines"] == 3100 + 60 + 50
    (chain,) = found.chains()
    assert chain["teraflops"] == pytest.approx(tuned + masked)


def test_a_chapter_has_its_figures_for_every_pair_and_compares_its_translations(monkeypatch):
    """One table, two figures of two pairs; 1,000 and 40 lines, each resampled twice."""
    module = load(monkeypatch, "output_work")
    sizes = {**SIZES, "b.de-en": {"train": 100, "dev": 20, "test": 40}}
    translated = [f"results/x/train/{pair}/baseline/seed1/translations/test" for pair in sizes]
    job = {
        "rule": "headmask",
        "input": [f"{path}.{end}" for path in translated for end in ("txt", "json")],
        "output": [
            "tables/a.md",
            "tables/a.csv",
            "figures/b.pdf",
            "figures/c.pdf",
            "figures/c.csv",
        ],
    }
    found = {"starts": 1, "tables": 1, "figures": 4, "resamples": 2080}
    assert module.output_units(job, sizes) == found
    pruning = job | {"rule": "voita_pruning"}
    assert module.output_units(pruning, sizes)["figures"] == pytest.approx(4 * 2.2)
    read = 0.4 * (30000 + 1000 + 1000 + 100 + 20 + 40)
    assert module.output_units(job | {"rule": "general"}, sizes)["lines"] == pytest.approx(read)


@pytest.mark.parametrize(
    "bpe, pieces",
    [
        ({"merges": 4000}, 4000),
        ({"merges": 4000, "largest": 900}, 900),
        ({"unit": "words", "largest": 17191}, 17191),
        ({"unit": "words"}, 30000),  # assumed
    ],
)
def test_a_vocabulary_not_made_yet_has_the_pieces_asked_for(monkeypatch, bpe, pieces):
    """And padding, start, end and unknown."""
    sizes, plan = load(monkeypatch, "sizes"), load(monkeypatch, "plan")
    asked = plan.Plan({"experiment": "quickstart"}, [])
    settings = asked.settings.model_copy(update={"bpe": BpeSettings(**bpe)})
    monkeypatch.setattr(asked, "settings", settings)
    monkeypatch.setattr(asked.layout.__class__, "bpe", lambda *_: "nowhere")
    assert sizes.sentences_of(asked)[0].vocabulary == pieces + 4


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
    link_project(tmp_path)
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "results" / "tiny" / "benchmarks" / "estimate.csv")
    jobs = int(done.stdout.split(" jobs")[0].split(": ")[1])
    assert table["jobs"].sum() == jobs
    dry = [sys.executable, "-m", "snakemake", "-n", "-F", "--config", "experiment=tiny"]
    planned = subprocess.run(dry, cwd=tmp_path, capture_output=True, text=True).stdout
    assert re.search(rf"^total +{jobs + 1}\b", planned, re.M)  # rule all besides
    assert "in 30.0 min:\n  data: " in done.stdout and "report: " in done.stdout
    assert "at most, as if models had all their heads: scratch, fine_tune, speed\n" in done.stdout
