"""What a classifier is made from: labels, device, library; and the flags of its script."""

import sys

import pytest
import torch
from script_runner import run_script
from small_bert import pairs, save_bert

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data.entailment import Example
from headcount_hf.classifiers.classifier import Classifier, number_labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.mark.parametrize("flag", ["--runs", "--test-sets", "--updates", "--timed", "--sentences"])
def test_flags_that_mean_nothing_here_are_refused(flag, capsys):
    names = ("model", "dev", "matched", "mismatched", "out")
    required = [word for name in names for word in (f"--{name}", "x")]
    assert run_script("classifier_ablation", [*required, flag, "[]"]) == 2
    assert f"unrecognized arguments: {flag}" in capsys.readouterr().err


def test_labels_have_the_order_in_which_they_are_named(tmp_path):
    folder = save_bert(tmp_path, labels=("LABEL_0", "LABEL_1"))
    with pytest.raises(UserError, match="calls its labels label_0, label_1, which does not tell"):
        Classifier.load(folder)
    named = Classifier.load(folder, ["entailment", "Contradiction"])
    assert named.labels == {"entailment": 0, "contradiction": 1}
    assert named.gold(
        [Example("a", "b", "Contradiction"), Example("a", "b", "entailment")]
    ).tolist() == [1, 0]


@pytest.mark.parametrize(
    "own, named, words",
    [
        ("LABEL_0 LABEL_1", "", "name them in this order, such as --labels contradiction neutral"),
        ("LABEL_0 LABEL_1", "yes", "expected 2 different names .* of label_0, label_1; found yes"),
        ("no yes", "no maybe yes", "expected 2 different names .* found no, maybe, yes"),
        ("no yes", "yes YES", "expected 2 different names .* found yes, yes"),
        ("no yes", "no yess", "'yess' is none of the model's labels; nearest: yes"),
    ],
)
def test_f09_labels_that_do_not_fit_the_model_are_refused(own, named, words):
    with pytest.raises(UserError, match=f"--labels: .*{words}"):
        number_labels(own.split(), named.split())


def test_a_models_own_names_stand_and_can_be_put_in_another_order():
    assert number_labels(["No", "YES"], []) == {"no": 0, "yes": 1}
    assert number_labels(["no", "yes"], ["yes", "no"]) == {"yes": 0, "no": 1}


def test_model_and_inputs_are_where_they_are_asked_to_be(folder, monkeypatch):
    """On a device that holds no numbers, as far as the model itself."""
    monkeypatch.setattr("headcount_hf.classifiers.classifier.pick_device", torch.device)
    moved = Classifier.load(folder, device="meta")
    assert moved.encoder.device.type == "meta"
    seen = []

    def look(_, args, inputs):
        seen.append({value.device.type for value in inputs.values()})
        raise InterruptedError

    moved.encoder.model.register_forward_pre_hook(look, with_kwargs=True)
    for measure in (lambda found: moved.correct(found, [(0,)]), moved.importance):
        with pytest.raises(InterruptedError):
            measure(pairs(3, seed=5))
    assert seen == [{"meta"}, {"meta"}]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused(folder):
    with pytest.raises(EnvironmentFault, match="expected a GPU that torch can use, found none"):
        Classifier.load(folder, device="cuda")


def test_f53_a_missing_library_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(EnvironmentFault, match=r"pip install -e '\.\[bert\]'"):
        Classifier.load(folder)
