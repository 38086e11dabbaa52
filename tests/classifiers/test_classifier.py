"""Heads of a small BERT; where accuracy counts, it learns a synthetic task first."""

import csv
import json

import numpy as np
import pytest
import torch
import transformers
from script_runner import run_script
from small_bert import WORDS, pairs, save_bert, write_pairs
from torch.nn import functional

from headcount.base.errors import UserError
from headcount.data.entailment import Example
from headcount.model.transformer import watch_inputs
from headcount.scoring.bootstrap import resample_means
from headcount_hf.classifiers.classifier import Classifier
from headcount_hf.hooks.multiplied import HookedEncoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def classifier(folder) -> Classifier:
    return Classifier.load(folder, device="cpu")


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """The same once it has learnt the task."""
    folder = save_bert(tmp_path_factory.mktemp("learnt"))
    own = Classifier.load(folder, device="cpu")
    train = pairs(3000, seed=1)
    texts = [p.first for p in train], [p.second for p in train]
    inputs = own.tokeniser(*texts, return_tensors="pt")
    gold = torch.from_numpy(own.gold(train))
    optimiser = torch.optim.Adam(own.encoder.model.parameters(), lr=5e-3)
    for step in range(300):
        rows = torch.arange(step * 100, step * 100 + 100) % len(train)
        scores = own.encoder.model(**{name: value[rows] for name, value in inputs.items()}).logits
        functional.cross_entropy(scores, gold[rows]).backward()
        optimiser.step()
        optimiser.zero_grad()
    own.encoder.model.save_pretrained(folder)
    return folder


def logits(classifier: Classifier, found: list[Example], multiplier=None) -> torch.Tensor:
    texts = [[p.first for p in found], [p.second for p in found]]
    inputs = classifier.tokeniser(*texts, return_tensors="pt", padding=True)
    with torch.no_grad(), classifier.encoder.multiplied(multiplier):
        return classifier.encoder.model(**inputs).logits


def test_ones_change_nothing_and_no_hook_is_left(classifier):
    found = pairs(7, seed=5)
    plain = logits(classifier, found)
    assert torch.equal(logits(classifier, found, torch.ones(6)), plain)
    assert not torch.allclose(logits(classifier, found, torch.zeros(6)), plain)
    assert torch.equal(logits(classifier, found), plain)


def without(folder, place: int) -> Classifier:
    """The model whose W_O has zero columns for one head."""
    own = Classifier.load(folder, device="cpu")
    layer, head = divmod(place, 3)
    dense = own.encoder.model.bert.encoder.layer[layer].attention.output.dense
    with torch.no_grad():
        dense.weight[:, 8 * head : 8 * head + 8] = 0  # heads of width 24 / 3
    return own


@pytest.mark.parametrize("place", range(6))
def test_a_mask_is_the_same_as_zero_columns_in_the_output_projection(folder, classifier, place):
    found, mask = pairs(7, seed=5), torch.ones(6)
    mask[place] = 0
    masked = logits(classifier, found, mask)
    assert not torch.allclose(masked, logits(classifier, found))
    torch.testing.assert_close(logits(without(folder, place), found), masked, atol=1e-6, rtol=1e-5)


FAMILIES = {
    "Bert": {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 3},
    "Roberta": {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 3},
    "Electra": {"hidden_size": 24, "embedding_size": 6, "num_hidden_layers": 3},
    "DistilBert": {"dim": 24, "hidden_dim": 48, "n_layers": 3},
}


def test_a_model_whose_attention_is_in_part_a_convolution_is_refused():
    config = transformers.ConvBertConfig(
        vocab_size=13, num_attention_heads=4, hidden_size=24, intermediate_size=48,
        num_hidden_layers=2, embedding_size=24,
    )  # fmt: skip
    with pytest.raises(UserError, match="expected 4 heads in convbert.encoder.layer.0.* found 2"):
        HookedEncoder(transformers.ConvBertForSequenceClassification(config), 4)


@pytest.mark.parametrize("family", FAMILIES)
def test_masks_of_every_family_act_on_their_layer(family):
    config = getattr(transformers, f"{family}Config")(
        vocab_size=13, num_attention_heads=3, initializer_range=0.3, **FAMILIES[family]
    )
    model = getattr(transformers, f"{family}ForSequenceClassification")(config).eval()
    encoder, inputs = HookedEncoder(model, 3), {"input_ids": torch.tensor([[2, 5, 6, 3]])}
    assert encoder.grid.counts["enc_self"] == (3, 3, 3)
    outputs = [joined.output for *_, joined in encoder.attentions()]
    for layer, output in enumerate(outputs):
        mask = torch.ones(9)
        mask[3 * layer : 3 * layer + 3] = 0
        with torch.no_grad(), encoder.multiplied(mask), watch_inputs(outputs) as entering:
            model(**inputs)
        silent = [not states.any() for states in entering.values()]
        assert silent == [place == layer for place in range(3)] and output in entering


def test_importance_is_the_slope_of_each_pairs_loss(classifier):
    """Against central differences, pair by pair."""
    found, step = pairs(5, seed=8), 1e-2
    gold = torch.from_numpy(classifier.gold(found))

    def losses(place: int, change: float) -> torch.Tensor:
        multiplier = torch.ones(6)
        multiplier[place] += change
        scores = logits(classifier, found, multiplier)
        return functional.cross_entropy(scores, gold, reduction="none")

    expected = [
        ((losses(place, step) - losses(place, -step)) / (2 * step)).abs().mean().item()
        for place in range(6)
    ]
    measured = classifier.importance(found, batch=2)
    assert measured == pytest.approx(expected, rel=0.05, abs=1e-4)


@pytest.mark.parametrize("place", range(6))
def test_importance_of_what_is_left_is_that_of_a_model_without_the_head(folder, classifier, place):
    found = pairs(5, seed=8)
    left = [other for other in range(6) if other != place]
    measured = classifier.importance(found, silent=(place,), batch=2)
    expected = without(folder, place).importance(found)
    assert measured[place] == 0
    assert measured[left] == pytest.approx(expected[left], rel=1e-4, abs=1e-7)
    assert measured[left] != pytest.approx(classifier.importance(found)[left], rel=1e-3)


def test_accuracy_of_resamples_by_hand():
    right = [np.array([1.0, 0, 1, 1]), np.array([1.0, 1, 1, 1])]
    scores = resample_means([100 * row for row in right], samples=50)
    assert scores.shape == (2, 51) and scores[:, 0].tolist() == [75, 100]
    drawn = np.random.default_rng(12345).choice(4, size=(50, 4), replace=True)
    assert scores[0, 1:].tolist() == (100 * right[0][drawn].mean(axis=1)).tolist()


@pytest.mark.slow
def test_the_script_writes_the_same_statistics(learnt, tmp_path):
    files = {
        "dev": write_pairs(tmp_path / "dev.jsonl", pairs(60, seed=2)),
        "matched": write_pairs(tmp_path / "matched.jsonl", pairs(80, seed=3)),
        "mismatched": write_pairs(
            tmp_path / "mismatched.jsonl", pairs(80, seed=4, words=WORDS[:6])
        ),
    }
    flags = [word for name, path in files.items() for word in (f"--{name}", path)]
    flags += ["--model", learnt, "--out", tmp_path / "out", "--steps", 3, "--draws", 1]
    flags += ["--labels", "contradiction", "entailment", "--reestimate", "true"]
    assert run_script("classifier_ablation", flags) == 0
    rows = list(csv.DictReader((tmp_path / "out" / "classifier_ablation.csv").open()))
    single = [r for r in rows if (r["test_set"], r["order"]) == ("matched", "single")]
    assert [row["heads"] for row in single] == [f"enc_self.{n // 3}.{n % 3}" for n in range(6)]
    whole = float(next(r for r in rows if r["test_set"] == "matched")["accuracy"])
    classifier, every = Classifier.load(learnt), tuple(range(6))
    right = classifier.correct(pairs(80, seed=3), [(), (1,), every], batch=32)
    assert right[()].mean() > 0.9 and right[every].mean() < 0.7
    mask = torch.tensor([1.0, 0, 1, 1, 1, 1])
    guesses = logits(classifier, pairs(80, seed=3), mask).argmax(-1).numpy()
    gold = classifier.gold(pairs(80, seed=3))
    assert right[1,].tolist() == (guesses == gold).astype(float).tolist()
    assert whole == pytest.approx(100 * right[()].mean())
    assert float(single[1]["delta"]) == pytest.approx(100 * right[1,].mean() - whole)
    kept = [r for r in rows if (r["test_set"], r["order"]) == ("mismatched", "all_but_one")]
    assert [row["layer"] for row in kept] == ["0", "1"]
    facts = json.loads((tmp_path / "out" / "classifier_ablation.json").read_text())
    provenance = facts["provenance"]
    settings = provenance["settings"]
    assert settings["ablation"]["reestimate"] and "test_sets" not in settings["ablation"]
    assert settings["labels"] == ["contradiction", "entailment"]
    assert any(path.endswith("/model.safetensors") for path in provenance["inputs"])
    profile = list(csv.DictReader((tmp_path / "out" / "classifier_profile.csv").open()))
    steps = [r for r in profile if (r["scope"], r["order"]) == ("all", "importance")]
    assert [row["heads_masked"] for row in steps] == ["0", "2", "4", "6"]
    assert (tmp_path / "out" / "classifier_profile_areas.csv").stat().st_size > 0


def test_f09_labels_and_models_that_do_not_fit_are_refused(classifier, tmp_path):
    with pytest.raises(UserError, match="label 'neutral': .* contradiction, entailment"):
        classifier.gold([Example("a", "b", "neutral")])
    with pytest.raises(UserError, match=r"expected weights as \.safetensors, found none"):
        Classifier.load(tmp_path)
    with pytest.raises(UserError, match="Linear: expected the attention of a BERT"):
        HookedEncoder(torch.nn.Linear(2, 2), 3)
