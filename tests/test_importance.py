"""Head importance against finite differences, single sentences and the chain rule."""

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model

from headcount.data.batches import ParallelText, collate
from headcount.model.loss import token_losses
from headcount.runs.importance import batch_importance

BATCH = collate(TEXT, [0, 1, 2])


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double()


def losses_of(model, number: int, multiplier=None):
    """Summed loss of one sentence alone."""
    with torch.no_grad():
        return token_losses(model, collate(TEXT, [number]), multiplier).sum()


def slope(model, number: int, position: int, step: float = 1e-5) -> float:
    """∂L/∂ξ of one head for one sentence alone, by central differences."""
    nudge = torch.zeros(17, dtype=torch.float64)
    nudge[position] = step
    up, down = (losses_of(model, number, 1 + sign * nudge) for sign in (1, -1))
    return float(up - down) / (2 * step)


def test_batch_importance_is_the_mean_slope_over_single_sentences(model):
    rows = [[slope(model, n, h) for h in range(17)] for n in range(3)]
    slopes = torch.tensor(rows, dtype=torch.float64)
    found, loss = batch_importance(model, BATCH)
    torch.testing.assert_close(found, slopes.abs().mean(0), atol=1e-8, rtol=1e-6)
    signed, _ = batch_importance(model, BATCH, signed=True)
    torch.testing.assert_close(signed, -slopes.mean(0), atol=1e-8, rtol=1e-6)
    assert (signed < 0).any() and (signed > 0).any()
    assert loss == pytest.approx(sum(float(losses_of(model, n)) for n in range(3)))


def test_the_model_is_left_as_it_was():
    model = make_model(heads=UNEVEN).train()
    model.encoder[1].eval()  # a mode of its own comes back too
    frozen = model.decoder[0].feed_forward.inner.weight.requires_grad_(False)
    token_losses(model, BATCH).sum().backward()
    weights = [weight.detach().clone() for weight in model.parameters()]
    gradients = [None if w.grad is None else w.grad.clone() for w in model.parameters()]
    random = torch.get_rng_state()
    first, loss = batch_importance(model, BATCH)
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training and not model.encoder[1].training and model.decoder[2].training
    for weight, before, gradient in zip(model.parameters(), weights, gradients, strict=True):
        assert torch.equal(weight, before)
        assert weight.requires_grad == (weight is not frozen)
        assert gradient is weight.grad is None or torch.equal(weight.grad, gradient)
    again, loss_again = batch_importance(model.eval(), BATCH)
    assert torch.equal(first, again) and loss == loss_again  # so dropout was off
    with pytest.raises(IndexError):
        batch_importance(model.train(), collate(ParallelText([[99]], [[5]]), [0]))
    assert model.training and not frozen.requires_grad and model.encoder[0].training
    assert model.tgt_embedding.weight.requires_grad


def test_label_smoothing_changes_the_loss_that_is_differentiated(model):
    plain, loss = batch_importance(model, BATCH)
    smooth, smooth_loss = batch_importance(model, BATCH, smoothing=0.3)
    expected = token_losses(model, BATCH, smoothing=0.3).sum().item()
    assert smooth_loss == pytest.approx(expected) and abs(smooth_loss - loss) > 1e-3
    assert (smooth - plain).abs().max() > 1e-3


def test_bf16_is_near_fp32():
    model = make_model(heads=UNEVEN)
    exact, loss = batch_importance(model, BATCH)
    rough, rough_loss = batch_importance(model, BATCH, precision="bf16")
    assert not torch.equal(exact, rough)
    torch.testing.assert_close(rough, exact, atol=0.05 * float(exact.max()), rtol=0.05)
    assert rough_loss == pytest.approx(loss, rel=0.02)
