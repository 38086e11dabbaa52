"""The ways that only a GPU takes through the model, here on a CPU: fused attention, and bf16 by it.

Sources and targets are of other lengths, both have padding, the decoder is causal, and layers have
other numbers of heads.
"""

import math

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model

from headcount.data.batches import collate
from headcount.heads.importance import batch_importance
from headcount.model.attention import DenseAttention
from headcount.model.loss import summed_loss
from headcount.model.machine import number_format

BATCH = collate(TEXT, [0, 1, 2])
SOFT = 0.2 + 0.9 * torch.rand(3, 17, generator=torch.Generator().manual_seed(1))  # none is 1 or 0
multipliers = pytest.mark.parametrize(
    "multiplier", [None, SOFT[0], SOFT], ids=["none", "row", "each"]
)

# Numbers of bf16 have 8 bits, so each rounding is off by 2^-8 at most. What a gradient comes
# through: 5 layers with 8 roundings each, on the way there and back, the decoder's 3 with 4 more,
# and embedding and output. Roundings do not agree, so their squares add up; twice that is allowed.
ROUNDING = 2**-8
BOUND = 2 * ROUNDING * math.sqrt(2 * (5 * 8 + 3 * 4 + 2))  # 0.081


@pytest.fixture(params=[True, False])
def fused(request, monkeypatch):
    """By the fused kernel as on a GPU, or written out as on a CPU in bf16."""
    if request.param:
        monkeypatch.setattr(DenseAttention, "context", DenseAttention.fused)


def slopes_of(model, multiplier, precision="fp32"):
    """The loss of a batch, and its gradients by all weights and the multiplier, by name."""
    asked = None if multiplier is None else multiplier.clone().requires_grad_()
    model.zero_grad()
    with number_format(precision, torch.device("cpu")):
        loss = summed_loss(model, BATCH, asked, 0.1)
    loss.backward()
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    return loss.item(), found if asked is None else {**found, "multiplier": asked.grad}


@pytest.mark.parametrize("exact", [True, False])
@multipliers
def test_fused_attention_gives_the_slopes_of_the_definition(monkeypatch, multiplier, exact):
    model, kind = make_model(heads=UNEVEN), torch.float64 if exact else torch.float32
    model, multiplier = model.to(kind), None if multiplier is None else multiplier.to(kind)
    found = []
    for way in (DenseAttention.written_out, DenseAttention.fused):
        monkeypatch.setattr(DenseAttention, "context", way)
        found.append(slopes_of(model, multiplier))
    (loss, slopes), (other_loss, others) = found
    assert other_loss == pytest.approx(loss, rel=1e-12 if exact else 1e-6)
    for name, slope in slopes.items():
        close = (1e-10 if exact else 1e-4) * slope.abs().max().item()
        torch.testing.assert_close(others[name], slope, rtol=0, atol=close, msg=name)
        assert slope.abs().max() > 0


def off(rough, exact):
    """How long the difference is, by the length of what is right."""
    return ((rough - exact).norm() / exact.norm()).item()


@multipliers
def test_bf16_is_off_by_its_roundings(fused, multiplier):
    model = make_model(heads=UNEVEN)
    loss, exact = slopes_of(model, multiplier)
    rough_loss, rough = slopes_of(model, multiplier, "bf16")
    assert rough_loss == pytest.approx(loss, rel=ROUNDING) and rough_loss != loss
    assert all(slope.dtype == torch.float32 for slope in rough.values())
    if multiplier is not None:
        assert 0 < off(rough.pop("multiplier"), exact.pop("multiplier")) < BOUND
    whole = (torch.cat([s.flatten() for s in slopes.values()]) for slopes in (rough, exact))
    assert 0 < off(*whole) < BOUND


@pytest.mark.parametrize("unit", ["sentence", "batch", "position", "token", "none"])
def test_importance_in_bf16_is_off_by_its_roundings(fused, unit):
    model = make_model(heads=UNEVEN)
    exact, _, loss = batch_importance(model, BATCH, unit)
    rough, _, rough_loss = batch_importance(model, BATCH, unit, "bf16")
    assert rough_loss.item() == pytest.approx(loss.item(), rel=ROUNDING)
    assert 0 < off(rough, exact) < BOUND
