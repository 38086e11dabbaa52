"""Which heads an update masks: the distribution of Random-N, the ranking of Impt-N."""

import itertools
import math

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, make_model, token_slopes

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.runs import RunSettings
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import collate, in_order
from headcount.heads.importance import batch_importance, measure_importance
from headcount.model.loss import token_losses
from headcount.training import headmask
from headcount.training.headmask import make_head_mask

HEADS = 17  # of UNEVEN
BATCHES = [collate(TEXT, [0, 2]), collate(TEXT, [1])]
SMOOTHING = 0.2


def make(name, heads=HEADS, seed=3):
    settings = TrainSettings(label_smoothing=SMOOTHING)
    return make_head_mask(RunSettings.model_validate(name), heads, settings, seed)


def masked(choice):
    return {position for position, silent in enumerate(choice.masked) if silent}


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double().train()


def near(found, expected, draws):
    """Whether shares are within 4.5 standard deviations of a probability."""
    return (abs(found - expected) < 4.5 * math.sqrt(expected * (1 - expected) / draws)).all()


@pytest.mark.slow
def test_random_draws_every_set_of_heads_alike():
    sampler, draws = make("random-5"), 6000
    table = np.array([sampler.choose(None, [], update).masked for update in range(1, draws + 1)])
    assert (table.sum(1) == 5).all()
    assert near(table.mean(0), 5 / 17, draws)
    pairs = [(table[:, a] & table[:, b]).mean() for a, b in itertools.combinations(range(17), 2)]
    assert near(np.array(pairs), 5 * 4 / (17 * 16), draws)
    # A head masked now is no likelier to be masked next.
    assert near((table[:-1] & table[1:]).mean(0), (5 / 17) ** 2, draws)


def test_random_follows_seed_and_update_and_disturbs_no_other_generator():
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    one, again, other = make("random-5"), make("random-5"), make("random-5", seed=4)
    updates = (1, 2, 30000)
    drawn = [one.choose(None, [], update).masked for update in updates]
    assert [again.choose(None, [], u).masked for u in reversed(updates)] == drawn[::-1]
    assert [other.choose(None, [], update).masked for update in updates] != drawn
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()


def test_f06_none_and_all():
    assert make("baseline").choose(None, [], 1).multiplier is None
    assert make("random-0").choose(None, [], 1).multiplier.tolist() == [1] * 17
    assert make("random-17").choose(None, [], 1).multiplier.tolist() == [0] * 17


@pytest.fixture(scope="module")
def slopes():
    """∂L/∂ξ [sentences, heads] of the smoothed loss, sentence by sentence, by differences."""
    model = make_model(heads=UNEVEN).double()
    return torch.stack([token_slopes(model, number, SMOOTHING).sum(1) for number in range(3)])


@pytest.mark.parametrize("batches", [BATCHES[:1], BATCHES])
def test_impt_masks_the_largest_of_the_very_batches(model, slopes, batches):
    sentences = [number for batch in batches for number in batch.indices]
    importance = slopes[sentences].abs().mean(0)
    order = importance.argsort(descending=True).tolist()
    for count in (0, 1, 5, 16, 17):
        choice = make(f"impt-{count}").choose(model, batches, 1)
        assert masked(choice) == set(order[:count])
    with torch.no_grad():
        expected = sum(token_losses(model.eval(), b, None, SMOOTHING).sum() for b in batches)
    assert choice.first_pass_loss == pytest.approx(float(expected), rel=1e-9)


def test_signed_masks_the_most_helpful_and_never_a_harmful_head(model, slopes):
    # Masking takes ξ from 1 to 0, so the loss grows by about −∂L/∂ξ.
    growth = -slopes.sum(0)
    helpful = [head for head in growth.argsort(descending=True).tolist() if growth[head] > 0]
    assert 3 < len(helpful) < HEADS
    for count in (2, len(helpful), HEADS):
        choice = make(f"impt-{count}-signed").choose(model, BATCHES, 1)
        assert masked(choice) == set(helpful[:count])
    assert masked(make("impt-2").choose(model, BATCHES, 1)) != set(helpful[:2])


def test_impt_by_batch_takes_the_size_of_the_whole_batch(model, slopes):
    """Sentences whose derivatives have opposite signs cancel: another order than by sentence."""
    for batches in ([collate(TEXT, [0, 1, 2])], BATCHES):
        sizes = sum(slopes[batch.indices].sum(0).abs() for batch in batches)
        order = sizes.argsort(descending=True).tolist()
        for count in (1, 4, 9, 13):
            choice = make(f"impt-{count}-batch").choose(model, batches, 1)
            assert masked(choice) == set(order[:count])
    found, _ = batch_importance(model, collate(TEXT, [0, 1, 2]), "batch", smoothing=SMOOTHING)
    torch.testing.assert_close(found, slopes.sum(0).abs() / 3, atol=1e-8, rtol=1e-6)
    assert (found < slopes.abs().mean(0) - 0.01).any()  # some do cancel


def test_impt_by_position_ranks_as_the_measured_importance_does(model):
    settings = ImportanceSettings(abs="position", loss="smoothed", batch_tokens=10**6)
    measured = measure_importance(model, TEXT, settings, SMOOTHING)
    (batch,) = in_order(TEXT, 10**6, torch.device("cpu"))
    order = (-measured).argsort(kind="stable").tolist()
    for count in (1, 5, 11):
        choice = make(f"impt-{count}-position").choose(model, [batch], 1)
        assert masked(choice) == set(order[:count])


def test_ema_ranks_by_the_average_over_updates(model):
    first, second = (batch_importance(model, b, smoothing=SMOOTHING)[0] for b in BATCHES)
    averaged, latest = (
        importance.argsort(descending=True).tolist()
        for importance in (0.75 * 0.25 * first + 0.25 * second, second)
    )
    count = next(n for n in range(1, HEADS) if set(averaged[:n]) != set(latest[:n]))
    sampler = make(f"impt-{count}-ema0.75")
    sampler.choose(model, BATCHES[:1], 1)
    assert masked(sampler.choose(model, BATCHES[1:], 2)) == set(averaged[:count])


def test_equal_importances_are_masked_in_flat_order(monkeypatch):
    equal = torch.ones(HEADS), torch.tensor(2.5)
    monkeypatch.setattr(headmask, "batch_importance", lambda *_: equal)
    assert masked(make("impt-4").choose(None, BATCHES, 1)) == {0, 1, 2, 3}
    silent = make("impt-4-signed")
    monkeypatch.setattr(headmask, "batch_importance", lambda *_: (0 * equal[0], equal[1]))
    assert masked(silent.choose(None, BATCHES, 1)) == set()  # a slope of 0 helps nobody


def test_p_masks_in_its_share_of_the_updates_and_measures_in_no_other(monkeypatch):
    calls = []

    def measure(*arguments):
        calls.append(arguments)
        return torch.arange(HEADS), torch.tensor(1.0)

    monkeypatch.setattr(headmask, "batch_importance", measure)
    sampler = make("impt-2-p0.3")
    choices = [sampler.choose(None, BATCHES[:1], update) for update in range(1, 2001)]
    masking = [choice for choice in choices if choice.first_pass_loss is not None]
    assert len(calls) == len(masking)
    assert all(masked(choice) == {15, 16} for choice in masking)
    assert all(masked(choice) == set() for choice in choices if choice.first_pass_loss is None)
    assert near(np.array(len(masking) / 2000), 0.3, 2000)


def test_f41_a_first_pass_leaves_the_model_as_it_was(model):
    token_losses(model, BATCHES[0]).sum().backward()  # a gradient, to see whether it stays
    weights = [w.detach().clone() for w in model.parameters()]
    gradients = [w.grad.clone() for w in model.parameters()]
    random = torch.get_rng_state()
    for name in ("impt-3", "impt-3-signed", "impt-3-batch", "impt-3-position-ema0.5"):
        make(name).choose(model, BATCHES, 1)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training for module in model.modules())
    for weight, before, gradient in zip(model.parameters(), weights, gradients, strict=True):
        assert torch.equal(weight, before) and torch.equal(weight.grad, gradient)
        assert weight.requires_grad
