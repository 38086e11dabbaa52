"""How often an update waits for a GPU, counted on a CPU."""

import numpy as np
import pytest
import torch
from head_masks import make_mask
from small_models import TEXT, UNEVEN, make_model
from waits import Waits

from headcount.base.settings.train import TrainSettings
from headcount.data.batches import ParallelText
from headcount.training.states import StateStore
from headcount.training.train import Trainer

DEV = ParallelText([[5, 8]], [[10]])


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("baseline", 1),
        ("random-2", 1),
        ("impt-2", 2),
        pytest.param("impt-2-token-spare_enc_self-rest3", 2, marks=pytest.mark.slow),
        pytest.param("impt-2-position-held9", 2, marks=pytest.mark.slow),
        ("gates-all-l0.1", 1),
        ("subset-all-k6", 1),
    ],
)
def test_an_update_waits_once_and_after_a_first_pass(tmp_path, name, waits, batches):
    model = make_model(heads=UNEVEN, dropout=0.1)
    train = TrainSettings(batch_tokens=14, accumulate=batches)
    mask = make_mask(name, model.grid, train)
    trainer = Trainer(model, TEXT, DEV, train, 1, StateStore(tmp_path, {}, 1e9), mask)
    with Waits(model.parameters()) as noted:
        trainer._update()
        assert noted.seen == ["tolist"] * waits
        weight = model.tgt_embedding.weight[0].detach()
        weight[weight > 0].sum().item()  # that other waits are noted at all
    assert noted.seen[waits:] == ["index", "_local_scalar_dense"]


@pytest.mark.parametrize("name", ["random-5", "gates-all-l0.1", "subset-all-k5"])
def test_draws_follow_seed_and_update_alone(name):
    grid, train = make_model(heads=UNEVEN).grid, TrainSettings()
    one, again, other = (make_mask(name, grid, train, seed) for seed in (2, 2, 3))
    states = torch.get_rng_state(), np.random.get_state()[1].copy()

    def drawn(mask, *updates):
        return [mask.choose(None, [], update).multiplier.tolist() for update in updates]

    assert drawn(again, 30000, 2, 1) == drawn(one, 1, 2, 30000)[::-1]
    assert drawn(other, 1, 2, 30000) != drawn(one, 1, 2, 30000)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()
