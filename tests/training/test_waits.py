"""How often an update waits for a GPU, and what goes there, counted on a CPU."""

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model
from waits import Waits

from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.data.batches import ParallelText
from headcount.training.gates import HeadGates
from headcount.training.headmask import make_head_mask
from headcount.training.states import StateStore
from headcount.training.subset import HeadSubset
from headcount.training.train import Trainer

DEV = ParallelText([[5, 8]], [[10]])


def head_mask(name, grid, train):
    if name.startswith("gates"):
        return HeadGates(PrunedSettings.model_validate(name), grid, GatesSettings(), train, 1)
    if name.startswith("subset"):
        run = PrunedSettings.model_validate(name)
        return HeadSubset(run, grid, SubsetSettings(), train, 1)
    return make_head_mask(RunSettings.model_validate(name), grid, train, 1)


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("baseline", 1),
        ("random-2", 1),
        ("impt-2", 2),
        pytest.param("impt-2-position", 2, marks=pytest.mark.slow),
        pytest.param("impt-2-signed", 2, marks=pytest.mark.slow),
        pytest.param("impt-2-token-spare_enc_self", 2, marks=pytest.mark.slow),
        pytest.param("impt-2-held9", 2, marks=pytest.mark.slow),
        pytest.param("impt-2-rest3", 2, marks=pytest.mark.slow),
        ("gates-all-l0.1", 1),
        ("subset-all-k6", 1),
    ],
)
def test_an_update_waits_once_and_after_a_first_pass(tmp_path, name, waits, batches):
    model = make_model(heads=UNEVEN, dropout=0.1)
    train = TrainSettings(batch_tokens=14, accumulate=batches)
    mask = head_mask(name, model.grid, train)
    trainer = Trainer(model, TEXT, DEV, train, 1, StateStore(tmp_path, {}, 1e9), mask)
    with Waits(model.parameters()) as noted:
        trainer._update()
    assert noted.seen == ["tolist"] * waits


def test_nothing_but_numbers_of_pairs_goes_to_the_device(tmp_path, monkeypatch):
    model = make_model(heads=UNEVEN, dropout=0.1)
    train, states = TrainSettings(batch_tokens=14, accumulate=3), StateStore(tmp_path, {}, 1e9)
    trainer, gone = Trainer(model, TEXT, DEV, train, 1, states), []

    def noting(make):
        return lambda numbers, *a, **k: gone.append(list(numbers)) or make(numbers, *a, **k)

    for name in ("from_numpy", "tensor", "as_tensor"):
        monkeypatch.setattr(torch, name, noting(getattr(torch, name)))
    trainer._update()
    # Two batches make an epoch, of pairs 0 and 2 and of pair 1; which comes first is drawn.
    assert sorted(map(sorted, gone[:2])) == [[0, 2], [1]] and gone[2] in gone[:2]
    assert len(gone) == 3
