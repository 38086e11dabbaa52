"""Loss without heads, Shapley values against all subsets, integrated gradients."""

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, make_model

from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import collate, in_order
from headcount.heads.importance import integrated_gradients, measure_importance
from headcount.heads.loss_change import (
    MaskedLoss,
    measure_loss_change,
    random_orders,
    shapley_by_order,
)
from headcount.model.loss import token_losses


def of_each(model) -> list[float]:
    with torch.no_grad():
        return [float(token_losses(model, collate(TEXT, [n])).sum()) for n in range(len(TEXT))]


@pytest.mark.parametrize("batch_tokens", [4096, 1])
def test_the_change_is_that_of_each_sentence_alone(batch_tokens):
    """Sentence by sentence, head by head, with that head's columns of W_O at 0."""
    model = make_model(heads=UNEVEN).double()
    settings = ImportanceSettings(batch_tokens=batch_tokens)
    size, rise = measure_loss_change(model, TEXT, settings)
    whole = of_each(model)
    for kind, layer, attention in model.attentions():
        span = model.grid.span(kind, layer)
        for head, place in enumerate(range(span.start, span.stop)):
            columns = slice(head * attention.d_head, (head + 1) * attention.d_head)
            kept = attention.output.weight[:, columns].detach().clone()
            with torch.no_grad():
                attention.output.weight[:, columns] = 0
                without = of_each(model)
                attention.output.weight[:, columns] = kept
            changes = np.array(without) - np.array(whole)
            assert rise[place] == pytest.approx(changes.mean(), abs=1e-9)
            assert size[place] == pytest.approx(np.abs(changes).mean(), abs=1e-9)
    assert (rise < 0).any() and (rise > 0).any() and not np.allclose(size, np.abs(rise))


def test_of_a_small_head_the_change_is_its_importance():
    """L(1) − L(0) is ∂L/∂ξ + O(ξ²): a small head leaves a small error."""
    model = make_model(heads=UNEVEN).double()
    with torch.no_grad():
        for _, _, attention in model.attentions():
            attention.output.weight /= 1e6
    settings = ImportanceSettings()
    importance = measure_importance(model, TEXT, settings)
    size, _ = measure_loss_change(model, TEXT, settings)
    np.testing.assert_allclose(size, importance, rtol=1e-4, atol=1e-14)


FIVE = {"enc_self": [2, 0], "dec_self": [1, 0, 0], "dec_enc": [0, 2, 0]}


def loss_of(model, **settings) -> MaskedLoss:
    return MaskedLoss(model, in_order(TEXT, ImportanceSettings(**settings).batch_tokens))


def mean_loss(model, multiplier) -> float:
    """Mean over sentences, each by itself."""
    with torch.no_grad():
        losses = [token_losses(model, collate(TEXT, [n]), multiplier) for n in range(3)]
    return float(np.mean([float(each.sum()) for each in losses]))


@pytest.fixture(scope="module")
def model():
    return make_model(heads=UNEVEN).double()


@pytest.fixture(scope="module")
def small():
    return make_model(heads=FIVE).double()


@pytest.fixture(scope="module")
def exact(small) -> np.ndarray:
    """Of every head: Σ_S |S|! (4 − |S|)! / 5! · (L(S) − L(S + head)) over sets without it."""
    heads = range(small.grid.size)
    found = np.zeros(small.grid.size)
    for head in heads:
        others = [other for other in heads if other != head]
        for size in range(len(others) + 1):
            weight = factorial(size) * factorial(len(others) - size) / factorial(len(heads))
            for on in combinations(others, size):
                mask = torch.zeros(len(heads), dtype=torch.float64)
                mask[list(on)] = 1
                without = mean_loss(small, mask)
                mask[head] = 1
                found[head] += weight * (without - mean_loss(small, mask))
    return found


def test_the_loss_under_masks_one_after_another_is_that_of_each_alone(model):
    """The encoder runs anew only where its own heads differ."""
    loss = loss_of(model, batch_tokens=8)
    draw = torch.Generator().manual_seed(1)
    masks = (torch.rand(6, model.grid.size, generator=draw) > 0.4).double()
    masks[3, :5] = masks[2, :5]  # enc_self has 3 + 2 heads
    masks[5] = masks[0]
    for mask in masks:
        assert loss.under(mask) == pytest.approx(mean_loss(model, mask), rel=1e-12)
    ones = torch.ones(model.grid.size).double()
    expected = [mean_loss(model, each) for each in (ones, 0 * ones)]
    whole, none = loss.whole_and_none()
    assert [whole, none] == pytest.approx(expected, rel=1e-12)
    found = shapley_by_order(loss, random_orders(model.grid.size, 3, seed=1))
    np.testing.assert_allclose(found.sum(1), none - whole, rtol=1e-10)


def test_over_all_orders_they_are_the_shapley_values(small, exact):
    found = shapley_by_order(loss_of(small), map(list, permutations(range(5))))
    assert found.shape == (120, 5)
    np.testing.assert_allclose(found.mean(0), exact, rtol=1e-9, atol=1e-12)
    assert (exact < 0).any() and (exact > 0).any()


def test_an_order_by_hand():
    """L falls from 10 without heads to 0 with all: by 1, 6, 1 and 2 in this order."""

    class Planted:
        def whole_and_none(self):
            return 0.0, 10.0

        def under(self, on):
            return {3: 1.0, 2: 7.0, 1: 8.0}[int(on.sum())]

    orders = [[2, 0, 3, 1]]
    assert shapley_by_order(Planted(), orders).tolist() == [[6, 2, 1, 1]]


def test_orders_are_those_of_the_seed_and_differ():
    first = random_orders(9, 4, seed=1)
    assert random_orders(9, 6, seed=1)[:4] == first and random_orders(9, 4, seed=2) != first
    assert all(sorted(order) == list(range(9)) for order in first)
    assert len({tuple(order) for order in first}) == 4


def test_integrated_gradients_are_midpoints_of_slopes(small):
    """Of head 3: −(L at α + h e_3 minus L at α − h e_3) / 2h, at α of 1/4 and 3/4."""
    nudge = torch.zeros(5, dtype=torch.float64)
    nudge[3] = 1e-5
    slopes = []
    for at in (0.25, 0.75):
        middle = torch.full((5,), at, dtype=torch.float64)
        up, down = (mean_loss(small, middle + sign * nudge) for sign in (1, -1))
        slopes.append(-(up - down) / 2e-5)
    found = integrated_gradients(small, TEXT, ImportanceSettings(), 2)
    assert found[3] == pytest.approx(np.mean(slopes), rel=1e-6)


def test_of_small_heads_they_are_signed_importance_or_half_of_it():
    """Where L is a straight line in ξ its slope is the same all the way, as of the decoder's heads.

    What an encoder's head adds reaches the loss by a small head of the decoder alone: L has
    ξ · ξ', of which either gets half.
    """
    model = make_model(heads=UNEVEN).double()
    with torch.no_grad():
        for _, _, attention in model.attentions():
            attention.output.weight /= 1e6
    signed = measure_importance(model, TEXT, ImportanceSettings(abs="none"))
    found = integrated_gradients(model, TEXT, ImportanceSettings(), 3)
    encoder = 5  # heads, the first ones
    np.testing.assert_allclose(found[encoder:], signed[encoder:], rtol=1e-3)
    np.testing.assert_allclose(found[:encoder], signed[:encoder] / 2, rtol=1e-3)
