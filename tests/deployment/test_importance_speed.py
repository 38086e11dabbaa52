"""Importance and training in turns: what is timed, by a clock that counts its own readings."""

import itertools

import torch
from small_models import TEXT, make_model

from headcount.base.settings.importance import ImportanceSettings
from headcount.deployment.importance_speed import epoch_of, timed_in_turns


def test_each_work_is_timed_alone_after_a_round_that_does_not_count():
    done, ticks = [], itertools.count()
    works = {"importance": lambda: done.append("i"), "training": lambda: done.append("t")}
    rows = timed_in_turns(works, 5, 2, "cpu", clock=lambda: float(next(ticks)))
    assert "".join(done) == "ti" + "it" + "ti"  # take_turns begins each round with the other one
    assert rows == [
        ["importance", 1, 5, 1.0], ["training", 1, 5, 1.0],
        ["training", 2, 5, 1.0], ["importance", 2, 5, 1.0],
    ]  # fmt: skip


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
