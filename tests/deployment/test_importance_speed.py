"""Training beside importance: what is timed."""

import torch
from small_models import TEXT, make_model

from headcount.base.settings.heads import ImportanceSettings
from headcount.deployment.importance_speed import epoch_of


def test_an_epoch_trains_a_copy_with_dropout_and_leaves_the_model_alone(monkeypatch):
    model, steps = make_model(), []
    before = [weight.detach().clone() for weight in model.parameters()]
    plain = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: steps.append(plain(self)))
    settings = ImportanceSettings(batch_tokens=1)  # a batch for each of the three sentences
    epoch_of(model, TEXT, settings.batch_tokens)()
    assert len(steps) == len(TEXT) == 3
    assert not model.training
    for weight, kept in zip(model.parameters(), before, strict=True):
        assert torch.equal(weight, kept) and weight.grad is None
