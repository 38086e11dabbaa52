"""A loss that is no number in the second batch of an update: told, and nothing has changed."""

import math
import re

import pytest
import torch
from head_masks import make_mask
from small_models import TEXT, UNEVEN, make_model

from headcount.base.errors import UserError
from headcount.base.settings.train import TrainSettings
from headcount.model.loss import summed_loss
from headcount.training import train as train_module
from headcount.training.states import StateStore
from headcount.training.train import Trainer

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained


@pytest.mark.parametrize(
    ("name", "average"), [("random-4", "ema"), ("impt-4", "last"), ("gates-all-l0.1", "ema")]
)
def test_f37_nothing_has_changed(tmp_path, monkeypatch, name, average):
    model = make_model(heads=UNEVEN, dropout=0.2)
    settings = TrainSettings(
        updates=6, warmup_updates=2, dev_interval=2, batch_tokens=14, accumulate=2, average=average
    )
    mask = make_mask(name, model.grid, settings)
    trainer = Trainer(model, TEXT, TEXT, settings, 2, StateStore(tmp_path, {}, 1e9), mask)
    trainer._update()
    trainer._update()
    trainer._validate()
    # The importance of a first pass is learnt before the loss of the second one is known.
    kept = {
        key: tensor.clone()
        for key, tensor in trainer.snapshot().tensors.items()
        if not key.startswith("random/") and key != "head_mask/importance"
    }
    batches = []

    def bad_at_last(model, batch, *others):
        batches.append(batch)
        return summed_loss(model, batch, *others) * (math.nan if len(batches) == 2 else 1)

    monkeypatch.setattr(train_module, "summed_loss", bad_at_last)
    pairs = "update 3: the loss is nan, .* Training pairs of this update: "
    with pytest.raises(UserError, match=pairs) as told:
        trainer._update()
    named = re.search(r"this update: \[(.*?)\]", str(told.value))[1]
    assert [int(pair) - 1 for pair in named.split(", ")] == batches[1].indices != batches[0].indices
    after = trainer.snapshot().tensors
    assert len(kept) > 100 and all(torch.equal(after[key], kept[key]) for key in kept)
    assert trainer.progress.update == 2
