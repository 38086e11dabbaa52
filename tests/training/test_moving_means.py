"""Runs that are centred: what masked heads give in training, and what their importance is of."""

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model

from headcount.base.addresses import HeadGrid
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.data.batches import collate
from headcount.heads.head_outputs import HeadOutputs
from headcount.model.loss import summed_loss
from headcount.model.removal import set_means
from headcount.training.headmask import make_head_mask

BATCHES = [collate(TEXT, [0, 2]), collate(TEXT, [1])]
SMOOTHING = 0.2
NAME = "impt-4-signed-centred"


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double().train()


def make(name=NAME):
    settings = TrainSettings(label_smoothing=SMOOTHING)
    return make_head_mask(RunSettings.model_validate(name), HeadGrid(UNEVEN), settings, 3)


def mean_outputs(batches):
    """By the measure of trained models, which sums another way: [heads, e]."""
    model = make_model(heads=UNEVEN).double().eval()
    outputs = HeadOutputs(model)
    for batch in batches:
        with outputs.of(batch), torch.no_grad():
            summed_loss(model, batch, None, SMOOTHING)
    return torch.from_numpy(outputs.means())


def given(model):
    """What silent heads of a model give, [heads, e]."""
    return torch.cat([module.means for *_, module in model.attentions()])


def test_masked_heads_give_the_mean_over_the_real_positions_of_the_update(model):
    make().choose(model, BATCHES, 1)
    # fp32 between, so that runs in fp32 and fp64 are saved alike
    torch.testing.assert_close(given(model), mean_outputs(BATCHES), atol=1e-7, rtol=1e-6)
    with_padding = mean_outputs(BATCHES[:1])
    assert (given(model) - with_padding).abs().max() > 1e-3  # so that the line above can fail


def test_means_move_by_a_twentieth_an_update(model):
    sampler = make()
    sampler.choose(model, BATCHES[:1], 1)
    sampler.choose(model, BATCHES[1:], 2)
    expected = 0.95 * mean_outputs(BATCHES[:1]) + 0.05 * mean_outputs(BATCHES[1:])
    torch.testing.assert_close(given(model), expected, atol=1e-7, rtol=1e-6)


def test_slopes_are_of_the_difference_from_the_means(model):
    """Against differences of the loss: ξ moves a head between its mean and its output."""
    sampler = make()
    plain = sampler.choose(model, BATCHES, 1).first_pass.slopes
    about = sampler.choose(model, BATCHES, 2).first_pass.slopes
    still = make_model(heads=UNEVEN).double().eval()
    set_means(still, mean_outputs(BATCHES))
    step = 1e-5

    def loss(head, value):
        multiplier = torch.ones(17).double()
        multiplier[head] = value
        with torch.no_grad():
            return sum(summed_loss(still, batch, multiplier, SMOOTHING) for batch in BATCHES)

    ends = [loss(head, 1 + step) - loss(head, 1 - step) for head in range(17)]
    expected = torch.stack(ends) / (2 * step)
    torch.testing.assert_close(about, expected, atol=1e-5, rtol=1e-4)
    assert (about - plain).abs().max() > 1e-2


def test_a_stopped_run_has_the_same_means(model):
    whole, first, second = make(), make(), make()
    expected = [whole.choose(model, BATCHES, update).masked for update in (1, 2, 3)][-1]
    means = given(model)
    first.choose(model, BATCHES, 1)
    first.choose(model, BATCHES, 2)
    set_means(model, None)
    second.restore({name: tensor.clone() for name, tensor in first.state().items()})
    assert second.choose(model, BATCHES, 3).masked == expected
    assert torch.equal(given(model), means)
    assert "means" not in make("impt-4").state() and "means" not in make().state()
