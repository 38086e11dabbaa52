"""Heads of a small BERT that learns a synthetic task here; skipped without its library."""

import csv
import json
import random

import numpy as np
import pytest
import torch
from script_runner import run_script
from torch.nn import functional

from headcount.base.errors import UserError
from headcount.data.entailment import Pair
from headcount.model.hooked_encoder import HookedEncoder
from headcount.runs import machine
from headcount.runs.bootstrap import resample_accuracy

transformers = pytest.importorskip("transformers")

from headcount.runs.classifier import Classifier  # noqa: E402

WORDS = [f"w{n}" for n in range(8)]
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 24}


def pairs(count: int, seed: int, words=WORDS) -> list[Pair]:
    """A sentence of three words entails each of its words, and contradicts every other."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        first = draw.sample(words, 3)
        inside = number % 2 == 0
        others = [word for word in words if word not in first]
        second = draw.choice(first if inside else others)
        label = "entailment" if inside else "contradiction"
        found.append(Pair(" ".join(first), second, label))
    return found


def write(path, found: list[Pair]):
    rows = [dict(zip(("sentence1", "sentence2", "gold_label"), p, strict=True)) for p in found]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of 2 layers with 3 heads that has learnt the task, saved as the library does it."""
    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n"
    )
    tokeniser = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    tokeniser.save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=13, intermediate_size=48, max_position_embeddings=16, initializer_range=0.1,
        **SIZES,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        id2label={0: "contradiction", 1: "entailment"},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    train = pairs(3000, seed=1)
    texts = tokeniser([p.first for p in train], [p.second for p in train], return_tensors="pt")
    gold = torch.tensor([p.label == "entailment" for p in train]).long()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(300):
        rows = torch.arange(step * 100, step * 100 + 100) % len(train)
        logits = model(**{name: value[rows] for name, value in texts.items()}).logits
        functional.cross_entropy(logits, gold[rows]).backward()
        optimiser.step()
        optimiser.zero_grad()
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def classifier(folder) -> Classifier:
    return Classifier.load(str(folder))


def logits(classifier: Classifier, found: list[Pair], multiplier=None) -> torch.Tensor:
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


@pytest.mark.parametrize("place", range(6))
def test_a_mask_is_the_same_as_zero_columns_in_the_output_projection(folder, place):
    own = Classifier.load(str(folder))
    found, mask = pairs(7, seed=5), torch.ones(6)
    mask[place] = 0
    masked = logits(own, found, mask)
    layer, head = divmod(place, 3)
    dense = own.encoder.model.bert.encoder.layer[layer].attention.output.dense
    with torch.no_grad():
        dense.weight[:, 8 * head : 8 * head + 8] = 0  # heads of width 24 / 3
    torch.testing.assert_close(logits(own, found), masked, atol=1e-6, rtol=1e-5)


def test_every_row_has_its_own_mask(classifier):
    found = pairs(2, seed=6)
    rows = torch.tensor([[1.0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1]])
    together = logits(classifier, found, rows)
    for number in (0, 1):
        alone = logits(classifier, found, rows[number])[number]
        torch.testing.assert_close(together[number], alone, atol=1e-6, rtol=1e-5)


def test_it_has_learnt_the_task_and_masks_cost_accuracy(classifier):
    found = pairs(200, seed=7)
    every = tuple(range(6))
    right = classifier.correct(found, [(), (0,), every], batch=32)
    assert right[()].mean() > 0.9 and right[every].mean() < 0.7
    guesses = logits(classifier, found, torch.tensor([0.0, 1, 1, 1, 1, 1])).argmax(-1).numpy()
    gold = np.array([p.label == "entailment" for p in found])
    assert right[0,].tolist() == (guesses == gold).astype(float).tolist()


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


def test_accuracy_of_resamples_by_hand():
    right = [np.array([1.0, 0, 1, 1]), np.array([1.0, 1, 1, 1])]
    found = resample_accuracy(right, samples=50)
    assert found.shape == (2, 51) and found[:, 0].tolist() == [75, 100]
    drawn = np.random.default_rng(12345).choice(4, size=(50, 4), replace=True)
    assert found[0, 1:].tolist() == (100 * right[0][drawn].mean(axis=1)).tolist()


def test_the_script_writes_the_same_statistics(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)
    files = {
        "dev": write(tmp_path / "dev.jsonl", pairs(60, seed=2)),
        "matched": write(tmp_path / "matched.jsonl", pairs(80, seed=3)),
        "mismatched": write(tmp_path / "mismatched.jsonl", pairs(80, seed=4, words=WORDS[:6])),
    }
    flags = [word for name, path in files.items() for word in (f"--{name}", path)]
    flags += ["--model", folder, "--out", tmp_path / "out", "--steps", 3, "--draws", 1]
    assert run_script("classifier_ablation", flags) == 0
    rows = list(csv.DictReader((tmp_path / "out" / "classifier_ablation.csv").open()))
    single = [r for r in rows if (r["test_set"], r["order"]) == ("matched", "single")]
    assert [row["heads"] for row in single] == [f"enc_self.{n // 3}.{n % 3}" for n in range(6)]
    whole = float(next(r for r in rows if r["test_set"] == "matched")["accuracy"])
    right = Classifier.load(str(folder)).correct(pairs(80, seed=3), [(), (1,)])
    assert whole == pytest.approx(100 * right[()].mean())
    assert float(single[1]["delta"]) == pytest.approx(100 * right[1,].mean() - whole)
    kept = [r for r in rows if (r["test_set"], r["order"]) == ("mismatched", "all_but_one")]
    assert [row["layer"] for row in kept] == ["0", "1"]
    profile = list(csv.DictReader((tmp_path / "out" / "classifier_profile.csv").open()))
    steps = [r for r in profile if (r["scope"], r["order"]) == ("all", "importance")]
    assert [row["heads_masked"] for row in steps] == ["0", "2", "4", "6"]
    assert (tmp_path / "out" / "classifier_profile_areas.csv").stat().st_size > 0
    findings = ["--results", tmp_path / "out", "--out", tmp_path / "findings"]
    assert run_script("classifier_findings", findings) == 0
    tables = ("ablation", "all_but_one", "transfer", "pruning", "areas")
    figures = ("ablation", "transfer", "pruning")
    expected = {f"tables/{n}.{end}" for n in tables for end in ("csv", "md", "tex", "json")}
    expected |= {
        f"figures/{n}.{end}" for n in figures for end in ("pdf", "svg", "png", "csv", "json")
    }
    written = [path for path in (tmp_path / "findings").rglob("*") if path.is_file()]
    names = {path.relative_to(tmp_path / "findings").as_posix() for path in written}
    assert {name.replace("michel_classifier_", "") for name in names} == expected
    assert all(path.stat().st_size > 0 for path in written)


def test_f09_labels_and_models_that_do_not_fit_are_refused(classifier, tmp_path):
    with pytest.raises(UserError, match="'neutral': the model has contradiction, entailment"):
        classifier.gold([Pair("a", "b", "neutral")])
    with pytest.raises(UserError, match="expected a folder or a name on the hub with a classifier"):
        Classifier.load(str(tmp_path))
    with pytest.raises(UserError, match="Linear: expected the attention of a BERT"):
        HookedEncoder(torch.nn.Linear(2, 2), 3)
