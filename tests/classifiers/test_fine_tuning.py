"""A small BERT fine-tuned by the library's trainer: what it starts from, learns, and leaves."""

import json
import math
import shutil
import sys

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from script_runner import run_script
from small_bert import pairs, save_bert, write_pairs
from small_run import small_origin
from torch.nn import functional

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.folders import CLASSIFIER_FILES
from headcount.base.settings.pretrained import FineTuningSettings
from headcount.model import machine
from headcount.training.training_run import Session
from headcount_hf.classifiers.classifier import Classifier
from headcount_hf.classifiers.classifier_files import read_classifier
from headcount_hf.classifiers.fine_tuning import fine_tune_classifier

LABELS = ["contradiction", "entailment"]


@pytest.fixture
def encoder(tmp_path):
    """The folder of a BERT that was never trained to classify."""
    folder = save_bert(tmp_path / "bert")
    model = transformers.AutoModel.from_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def tune(start, found, settings, tmp_path, name: str, seed: int = 1):
    """The folder that fine-tuning writes."""
    torch.set_num_threads(1)
    states, out = tmp_path / "state", tmp_path / name
    session = Session(settings, seed, small_origin({}) | {"seed": seed}, states, 0)
    fine_tune_classifier(start, found, session, out)
    return out


def test_without_what_the_trainer_runs_on_it_says_how_to_install_it(encoder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)  # as where the extra is not installed
    with pytest.raises(EnvironmentFault, match=r"accelerate .* pip install -e '\.\[bert\]'"):
        tune(encoder, [], FineTuningSettings(), tmp_path, "out")
    assert not (tmp_path / "out").exists()


def test_only_what_is_trained_anew_may_be_missing(encoder):
    with pytest.raises(UserError, match="the weights lack classifier.bias"):
        read_classifier(encoder)
    _, model = read_classifier(encoder, LABELS)
    assert model.config.label2id == {"contradiction": 0, "entailment": 1}
    weights = load_file(encoder / "model.safetensors")
    lost = next(name for name in weights if "layer.1" in name)
    kept = {name: value for name, value in weights.items() if name != lost}
    save_file(kept, encoder / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=r"the weights lack \S+\.layer\.1\.\S+, "):
        read_classifier(encoder, LABELS)


@pytest.mark.slow
def test_it_learns_and_its_loss_bounds_its_errors(encoder, tmp_path):
    """Of two labels, one that is wrong has at most half the probability: its loss is ln 2 or more.

    So errors are at most the mean loss by ln 2. Whoever guesses, has 0.5 and a loss of ln 2.
    """
    found = pairs(3000, seed=1)
    settings = FineTuningSettings(epochs=10, batch=50, peak_lr=3e-3, device="cpu")
    out = tune(encoder, found, settings, tmp_path, "out")
    classifier = Classifier.load(out / "model", device="cpu")
    texts = [pair.first for pair in found], [pair.second for pair in found]
    with torch.no_grad():
        scores = classifier.encoder.model(**classifier.tokeniser(*texts, return_tensors="pt"))
    gold = torch.from_numpy(classifier.gold(found))
    loss = functional.cross_entropy(scores.logits, gold).item()
    accuracy = classifier.correct(found, [()])[()].mean()
    assert accuracy >= 1 - loss / math.log(2) > 0.75
    facts = json.loads((out / "fine_tuning.json").read_text())
    assert (facts["pairs"], facts["updates"], facts["labels"]) == (3000, 600, LABELS)
    assert loss < math.log(2)


@pytest.mark.slow
def test_the_same_to_the_last_bit_by_script_and_after_a_stop(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)
    found = pairs(90, seed=1)
    settings = FineTuningSettings(epochs=3, batch=20, peak_lr=1e-3, device="cpu")
    train = write_pairs(tmp_path / "train.jsonl", found)
    flags = ["--model", encoder, "--train", train, "--seed", 1, "--state", tmp_path / "state"]
    flags += ["--out", tmp_path / "script", "--device", "cpu", "--epochs", 3, "--batch", 20]
    assert run_script("fine_tune_classifier", [*flags, "--peak-lr", 1e-3]) == 0
    provenance = json.loads((tmp_path / "script/fine_tuning.json").read_text())["provenance"]
    assert provenance["seed"] == 1 and provenance["settings"]["fine_tuning"]["epochs"] == 3
    read = {path.rpartition("/")[2] for path in provenance["inputs"]}
    assert {"train.jsonl", "model.safetensors", "tokenizer.json"} <= read
    whole = tune(encoder, found, settings, tmp_path, "whole")
    assert sorted(path.name for path in (whole / "model").iterdir()) == sorted(CLASSIFIER_FILES)
    assert not (tmp_path / "state").exists()
    weights = (whole / "model" / "model.safetensors").read_bytes()
    assert (tmp_path / "script/model/model.safetensors").read_bytes() == weights

    class Stopped(Exception):
        pass

    def stop(self, args, state, *others, **named):
        if state.epoch == 2:
            raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(transformers.TrainerCallback, "on_epoch_begin", stop)
        with pytest.raises(Stopped):
            tune(encoder, found, settings, tmp_path, "again")
    assert (
        len(list((tmp_path / "state").glob("*/kept/checkpoint-10"))) == 1
    )  # two epochs of 5 updates
    again = tune(encoder, found, settings, tmp_path, "again")
    assert (again / "model" / "model.safetensors").read_bytes() == weights
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "another's").touch()
    other = tune(encoder, found, settings, tmp_path, "other", seed=2)
    left = {path.name for path in (tmp_path / "state").iterdir()}
    assert left == {"another's", "lock"}
    assert (other / "model" / "model.safetensors").read_bytes() != weights


@pytest.mark.slow
def test_under_an_engine_nothing_is_fine_tuned_again_before_it_is_on_record(
    encoder, tmp_path, monkeypatch, capsys
):
    """An engine that dies between a job's end and its record removes the outputs afterwards."""
    found, settings = pairs(20, seed=1), FineTuningSettings(epochs=1, batch=20, device="cpu")
    monkeypatch.setenv("HEADCOUNT_JOB", "1")
    out = tune(encoder, found, settings, tmp_path, "out")
    kept = [path.relative_to(tmp_path) for path in (tmp_path / "state").glob("*/*")]
    assert [path.parts[2] for path in kept] == ["finished"]  # and no checkpoint
    made = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {path.name for path in made} == {*CLASSIFIER_FILES, "fine_tuning.json"}
    shutil.rmtree(out)
    monkeypatch.setattr(transformers.Trainer, "train", None)  # nobody may call it
    tune(encoder, found, settings, tmp_path, "out")
    assert "outputs taken from" in capsys.readouterr().err
    again = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert again == made
