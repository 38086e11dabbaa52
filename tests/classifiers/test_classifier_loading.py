"""Labels, device and library of a classifier."""

import sys

import pytest
import torch
from small_bert import pairs, save_bert

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data.entailment import Example
from headcount_hf.classifiers.classifier import Classifier, number_labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("bert"))


def test_labels_have_the_order_in_which_they_are_named(tmp_path):
    folder = save_bert(tmp_path, labels=("LABEL_0", "LABEL_1"))
    with pytest.raises(UserError, match="--labels: .* label_0, label_1; name them"):
        Classifier.load(folder)
    named = Classifier.load(folder, ["entailment", "Contradiction"])
    assert named.labels == {"entailment": 0, "contradiction": 1}
    examples = [Example("a", "b", "Contradiction"), Example("a", "b", "entailment")]
    assert named.gold(examples).tolist() == [1, 0]
    assert number_labels(["No", "YES"], []) == {"no": 0, "yes": 1}
    assert number_labels(["no", "yes"], ["yes", "no"]) == {"yes": 0, "no": 1}


@pytest.mark.parametrize(
    ("own", "named", "message"),
    [
        ("LABEL_0 LABEL_1", "", "name them in this order"),
        ("LABEL_0 LABEL_1", "yes", "expected 2 different names.* label_0, label_1; found yes"),
        ("no yes", "no maybe yes", "expected 2 different names.* found no, maybe, yes"),
        ("no yes", "yes YES", "expected 2 different names.* found yes, yes"),
        ("no yes", "no yess", "label 'yess'; nearest: yes"),
    ],
)
def test_f09_labels_that_do_not_fit_the_model_are_refused(own, named, message):
    with pytest.raises(UserError, match=f"--labels: (.* )?{message}"):
        number_labels(own.split(), named.split())


def test_model_and_inputs_are_on_the_device(folder, monkeypatch):
    """On a device without numbers, up to the model itself."""
    monkeypatch.setattr("headcount_hf.classifiers.classifier.pick_device", torch.device)
    moved = Classifier.load(folder, device="meta")
    assert moved.encoder.device.type == "meta"
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
