"""Cross-entropy by hand, plain and smoothed, and its sums over sentences."""

import math

import pytest
import torch
from small_models import TEXT, make_model

from headcount.data.batches import ParallelText
from headcount.model.loss import FusedLoss, summed_loss, token_losses
from headcount.training.score import mean_loss, score_targets


class FixedWords:
    """A model that gives every next word the same probabilities, whatever it reads."""

    def __init__(self, probabilities):
        self.row = torch.tensor(probabilities).log()
        self.tgt_embedding = torch.nn.Embedding(len(probabilities), 1)

    def encode(self, src, multiplier=None):
        return None

    def decode(self, tgt_in, memory, multiplier=None):
        return torch.zeros(*tgt_in.shape, 1)

    def logits(self, states):
        return self.row.expand(len(states), -1)


# Three words only: padding, start and end. Two empty targets, so EOS twice.
ENDS = ParallelText([[], []], [[], []]).batch([0, 1])


def test_smoothing_by_hand():
    # Losses of the three words: ln 2, 2 ln 2, 2 ln 2; their mean 5/3 ln 2. Target: the last.
    # 0.7 · 2 ln 2 + 0.3 · 5/3 ln 2 = (1.4 + 0.5) ln 2
    model = FixedWords([1 / 2, 1 / 4, 1 / 4])
    torch.testing.assert_close(token_losses(model, ENDS), torch.full((2,), math.log(4)))
    losses = token_losses(model, ENDS, smoothing=0.3)
    torch.testing.assert_close(losses, torch.full((2,), 1.9 * math.log(2)))


def test_losses_come_sentence_by_sentence():
    # Target 5 6 EOS, then 7 EOS, at probabilities 2^-id.
    probabilities = [2.0**-i for i in range(1, 9)]
    probabilities[0] += 2.0**-8  # so that they sum to 1
    batch = ParallelText([[4], [4]], [[5, 6], [7]]).batch([0, 1])
    losses = token_losses(FixedWords(probabilities), batch) / math.log(2)
    torch.testing.assert_close(losses, torch.tensor([6.0, 7, 3, 8, 3]))  # word i costs i + 1 bits


@pytest.mark.parametrize("budget", [2, 7, 14, 100])
def test_scores_belong_to_their_pairs_at_any_budget(budget):
    model = make_model()
    expected = [token_losses(model, TEXT.batch([i])).double().sum().item() for i in range(3)]
    assert score_targets(model, TEXT, budget).tolist() == pytest.approx(expected, abs=1e-5)
    # 3 + 7 + 2 target tokens with EOS.
    assert mean_loss(model, TEXT, budget) == pytest.approx(sum(expected) / 12, abs=1e-6)


@pytest.fixture(params=[1, 5, 100])
def rows(request, monkeypatch):
    """How many of the 12 target tokens are taken at a time: one, a part with a rest, all."""
    monkeypatch.setattr("headcount.model.loss._BYTES", {"cpu": 4 * 11 * request.param})
    return request.param


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_fused_loss_and_its_gradients_are_those_of_the_plain_one(rows, smoothing):
    model = make_model().double()
    batch = TEXT.batch([0, 1, 2])
    fused, plain = (
        gradients(model, loss)
        for loss in (
            summed_loss(model, batch, smoothing=smoothing),
            token_losses(model, batch, smoothing=smoothing).sum(),
        )
    )
    assert len(plain) > 20
    for name, expected in plain.items():
        torch.testing.assert_close(fused[name], expected, rtol=1e-9, atol=1e-11)


def gradients(model, loss, factor=3):
    """Value of a loss and derivatives of a multiple of it, so that a lost factor shows."""
    found = torch.autograd.grad(factor * loss, list(model.parameters()), allow_unused=True)
    names = [name for name, _ in model.named_parameters()]
    return {"loss": loss} | {n: g for n, g in zip(names, found, strict=True) if g is not None}


def test_fused_gradients_against_finite_differences(rows):
    torch.manual_seed(2)
    states = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 3, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 10, 4, 4])
    torch.autograd.gradcheck(lambda s, w: FusedLoss.apply(s, w, targets, 0.2), (states, weight))


def test_fused_loss_leaves_out_the_gradient_that_is_not_wanted():
    states = torch.zeros(2, 3, requires_grad=True)
    weight = torch.eye(3)
    FusedLoss.apply(states, weight, torch.tensor([0, 2]), 0.0).backward()
    # Even scores: softmax 1/3 each, minus 1 at the target; times the unit matrix.
    torch.testing.assert_close(states.grad, torch.tensor([[-2, 1, 1], [1, 1, -2]]) / 3)
    assert weight.grad is None


def test_fused_loss_in_bf16_is_the_plain_one_in_bf16():
    model, batch = make_model(), TEXT.batch([0, 1, 2])
    exact = gradients(model, summed_loss(model, batch, smoothing=0.1))
    with torch.autocast("cpu", torch.bfloat16):
        fused = gradients(model, summed_loss(model, batch, smoothing=0.1), factor=1)
        plain = gradients(model, token_losses(model, batch, smoothing=0.1).sum(), factor=1)
    assert fused["loss"].dtype == torch.float32 and fused["loss"] != exact["loss"]
    for name, expected in plain.items():  # the same roundings, in sums of another order
        torch.testing.assert_close(fused[name], expected, rtol=1e-3, atol=1e-3)
