"""Head importance against finite differences, single sentences and the chain rule."""

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, attention_of, make_model, one_pair, token_slopes

from headcount.base.addresses import HeadGrid
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import ParallelText, collate
from headcount.heads.importance import batch_importance, measure_importance, normalise_layers
from headcount.model.loss import token_losses

BATCH = collate(TEXT, [0, 1, 2])


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double()


def losses_of(model, number: int):
    """Losses of the target tokens of one sentence alone."""
    with torch.no_grad():
        return token_losses(model, collate(TEXT, [number]))


def measure(model, text=TEXT, **settings):
    return measure_importance(model, text, ImportanceSettings(**settings))


def test_batch_importance_is_the_mean_slope_over_single_sentences(model, slopes):
    slopes = np.array([each.sum(1) for each in slopes])
    found, _, loss = batch_importance(model, BATCH)
    np.testing.assert_allclose(found, np.abs(slopes).mean(0), atol=1e-8, rtol=1e-6)
    signed, _, _ = batch_importance(model, BATCH, "none")
    for unit in ("sentence", "batch", "position", "token", "none"):
        each = batch_importance(model, BATCH, unit)
        np.testing.assert_allclose(each.slopes, slopes, atol=1e-7, rtol=1e-6)
        assert each.loss.item() == pytest.approx(loss.item())
    np.testing.assert_allclose(signed, -slopes.mean(0), atol=1e-8, rtol=1e-6)
    assert (signed < 0).any() and (signed > 0).any()
    assert loss.item() == pytest.approx(sum(float(losses_of(model, n).sum()) for n in range(3)))


def test_the_model_is_left_as_it_was():
    model = make_model(heads=UNEVEN).train()
    model.encoder[1].eval()  # a mode of its own comes back too
    frozen = model.decoder[0].feed_forward.inner.weight.requires_grad_(False)
    token_losses(model, BATCH).sum().backward()
    weights = [weight.detach().clone() for weight in model.parameters()]
    gradients = [None if w.grad is None else w.grad.clone() for w in model.parameters()]
    random = torch.get_rng_state()
    first, _, loss = batch_importance(model, BATCH)
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training and not model.encoder[1].training and model.decoder[2].training
    for weight, before, gradient in zip(model.parameters(), weights, gradients, strict=True):
        assert torch.equal(weight, before)
        assert weight.requires_grad == (weight is not frozen)
        assert gradient is weight.grad is None or torch.equal(weight.grad, gradient)
    again, _, loss_again = batch_importance(model.eval(), BATCH)
    assert torch.equal(first, again) and loss == loss_again  # so dropout was off
    with pytest.raises(IndexError):
        batch_importance(model.train(), collate(ParallelText([[99]], [[5]]), [0]))
    assert model.training and not frozen.requires_grad and model.encoder[0].training
    assert model.tgt_embedding.weight.requires_grad


def test_label_smoothing_changes_the_loss_that_is_differentiated(model):
    plain, _, loss = batch_importance(model, BATCH)
    smooth, _, smooth_loss = batch_importance(model, BATCH, smoothing=0.3)
    expected = token_losses(model, BATCH, smoothing=0.3).sum().item()
    assert smooth_loss.item() == pytest.approx(expected) and abs(smooth_loss - loss) > 1e-3
    assert (smooth - plain).abs().max() > 1e-3


@pytest.fixture(scope="module")
def slopes():
    """Slopes of each sentence."""
    model = make_model(heads=UNEVEN).double()
    return [token_slopes(model, n, 0.0).numpy() for n in range(3)]


# What each unit of the absolute value makes of the slopes of one batch: [sentence][head, token].
EXPECTED = {
    "sentence": lambda slopes: sum(abs(each.sum(1)) for each in slopes),
    "token": lambda slopes: sum(abs(each).sum(1) for each in slopes),
    "batch": lambda slopes: abs(sum(each.sum(1) for each in slopes)),
    "none": lambda slopes: -sum(each.sum(1) for each in slopes),
}


@pytest.mark.parametrize("unit", EXPECTED)
def test_every_unit_matches_finite_differences(model, slopes, unit):
    found = measure(model, abs=unit)
    np.testing.assert_allclose(found, EXPECTED[unit](slopes) / 3, atol=1e-8, rtol=1e-6)


def test_by_position_it_is_the_chain_rule_with_absolute_values(model):
    """Σ |c · ∂L/∂c| by hooks of its own; without the bars it is ∂L/∂ξ (equation 2)."""
    with_bars, without = np.zeros(17), np.zeros(17)
    modules = [attention_of(model, kind, layer).output for kind, layer, _ in model.grid.heads()]
    kept = {}

    def keep(module, inputs):
        kept[module] = inputs[0]
        inputs[0].retain_grad()

    handles = [module.register_forward_pre_hook(keep) for module in set(modules)]
    for number in range(3):
        token_losses(model, collate(TEXT, [number])).sum().backward()
        for position, (module, address) in enumerate(zip(modules, model.grid.heads(), strict=True)):
            shares = (kept[module] * kept[module].grad).detach()[0]  # [q, heads · 4]
            shares = shares[:, 4 * address.head : 4 * address.head + 4].sum(1)
            with_bars[position] += shares.abs().sum()
            without[position] += shares.sum().abs()
    for handle in handles:
        handle.remove()
    np.testing.assert_allclose(measure(model, abs="position"), with_bars / 3, rtol=1e-9)
    np.testing.assert_allclose(measure(model, abs="sentence"), without / 3, rtol=1e-9)
    assert (with_bars > without).any()


@pytest.mark.parametrize(
    "unit",
    ["sentence", *(pytest.param(u, marks=pytest.mark.slow) for u in ("token", "position", "none"))],
)
def test_padding_and_batch_composition_change_nothing(model, unit):
    more = ParallelText(TEXT.src * 2 + [[5, 6]], TEXT.tgt * 2 + [[4] * 12])  # padded by the last
    alone = [measure(model, one_pair(more, number), abs=unit) for number in range(7)]
    for budget in (1, 13, 100):
        found = measure(model, more, abs=unit, batch_tokens=budget)
        np.testing.assert_allclose(found, np.mean(alone, axis=0), rtol=1e-8)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("unit", ["sentence", "token", "position", "batch", "none"])
def test_layers_without_heads_have_no_entry(unit):
    heads = {"enc_self": [0, 2], "dec_self": [0, 3, 0], "dec_enc": [2, 0, 1]}
    model = make_model(heads=heads).double()
    found = measure(model, abs=unit)
    assert found.shape == (8,) and np.isfinite(found).all() and (found != 0).all()
    if unit == "sentence":
        slopes = [token_slopes(model, number).sum(1).numpy() for number in range(3)]
        np.testing.assert_allclose(found, np.abs(slopes).mean(0), rtol=1e-6)


def test_a_layer_divided_by_its_norm():
    grid = HeadGrid({"enc_self": (2, 0), "dec_self": (1,), "dec_enc": (2,)})
    # (3, 4) has norm 5; -2 has norm 2; a layer of zeros stays zero.
    found = normalise_layers(np.array([3.0, 4.0, -2.0, 0.0, 0.0]), grid)
    assert found.tolist() == [0.6, 0.8, -1.0, 0.0, 0.0]
