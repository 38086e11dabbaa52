"""Files of a classifier: its code never runs, and pickles are refused."""

import io
import json
import pickle
import sys

import pytest
import torch
from safetensors.torch import load_file
from script_runner import run_script
from small_bert import pairs, save_bert

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data.entailment import Example
from headcount.model import machine
from headcount.model.transformer import first_device
from headcount_hf.classifiers.classifier import Classifier, number_labels
from headcount_hf.classifiers.classifier_files import read_classifier
from headcount_hf.pretrained.library import input_files


class Trap:
    """An object whose pickle makes a file when it is loaded."""

    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return (open, (str(self.canary), "w"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bert").mkdir()
    return save_bert(tmp_path / "bert")


def test_x22_code_beside_a_model_never_runs_and_nobody_is_asked(folder, tmp_path, monkeypatch):
    canary = tmp_path / "canary"
    config = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "own.OwnConfig", "AutoModelForSequenceClassification": "own.Own"}
    config |= {"model_type": "own", "auto_map": own}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(canary)!r}, 'w')\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\ny\n"))
    with pytest.raises(UserError, match=f"{folder}: expected a whole classifier"):
        read_classifier(folder)
    assert sys.stdin.read() == "y\ny\n" and not canary.exists()
    names = {path.name for path in input_files(folder)}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert "own.py" not in names


def test_x23_x26_pickles_and_damaged_files_are_refused(folder, tmp_path):
    """Also a pickle that is named safetensors."""
    canary, path = tmp_path / "canary", folder / "model.safetensors"
    weights, whole = load_file(path), path.read_bytes()
    for damaged in (pickle.dumps(Trap(canary)), b"", whole[:-9]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=f"{path}: not a whole safetensors file"):
            read_classifier(folder)
    path.write_bytes(whole)
    for name in ("tokenizer.json", "config.json"):
        text = (folder / name).read_text()
        (folder / name).write_text(text[:-5])
        with pytest.raises(UserError, match=f"{folder}: expected a whole classifier"):
            read_classifier(folder)
        (folder / name).write_text(text)
    path.unlink()
    for content in (weights, {"w": Trap(canary)}):
        torch.save(content, folder / "pytorch_model.bin")
        with pytest.raises(UserError, match=r"expected weights as \.safetensors, found none"):
            read_classifier(folder)
    assert not canary.exists()


def test_f34_the_command_refuses_pickles_with_exit_code_2(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence1": "w1", "sentence2": "w2", "gold_label": "entailment"}\n')
    flags = ["--model", folder, "--out", tmp_path / "out"]
    for name in ("dev", "matched", "mismatched"):
        flags += [f"--{name}", pairs]
    assert run_script("classifier_ablation", flags) == 2
    assert f"{folder}: expected weights as .safetensors" in capsys.readouterr().err


def test_labels_have_the_order_in_which_they_are_named(tmp_path):
    folder = save_bert(tmp_path, labels=("LABEL_0", "LABEL_1"))
    with pytest.raises(UserError, match="--labels: .* label_0, label_1, in this order"):
        Classifier.load(folder)
    named = Classifier.load(folder, ["entailment", "Contradiction"])
    assert named.labels == {"entailment": 0, "contradiction": 1}
    examples = [Example("a", "b", "Contradiction"), Example("a", "b", "entailment")]
    assert named.gold(examples).tolist() == [1, 0]
    assert number_labels(["No", "YES"], []) == {"no": 0, "yes": 1}
    assert number_labels(["no", "yes"], ["yes", "no"]) == {"yes": 0, "no": 1}


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ("LABEL_0 LABEL_1", ""),
        ("LABEL_0 LABEL_1", "yes"),
        ("no yes", "no maybe yes"),
        ("no yes", "yes YES"),
        ("no yes", "no yess"),
    ],
)
def test_f09_labels_that_do_not_fit_the_model_are_refused(own, named):
    with pytest.raises(UserError, match="--labels: expected a name"):
        number_labels(own.split(), named.split())


def test_model_and_inputs_are_on_the_device(folder, monkeypatch):
    """On a device without numbers, up to the model itself."""
    monkeypatch.setattr("headcount_hf.classifiers.classifier.pick_device", torch.device)
    moved = Classifier.load(folder, device="meta")
    assert first_device(moved.encoder).type == "meta"
    seen = []

    def look(_, args, inputs):
        seen.append({value.device.type for value in inputs.values()})
        raise InterruptedError

    moved.encoder.model.register_forward_pre_hook(look, with_kwargs=True)
    for measure in (lambda examples: moved.correct(examples, [(0,)]), moved.importance):
        with pytest.raises(InterruptedError):
            measure(pairs(3, seed=5))
    assert seen == [{"meta"}, {"meta"}]


def test_f53_a_missing_library_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(EnvironmentFault, match=r"pip install -e '\.\[bert\]'"):
        Classifier.load(folder)
