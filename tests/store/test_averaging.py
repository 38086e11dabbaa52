"""Averages of weights by hand."""

import pytest
import torch

from headcount.base.settings.train import TrainSettings
from headcount.training.optimiser import Average, LastAverage, MovingAverage, make_average


def weights_of(value):
    """Two tensors that move in opposite directions."""
    return {
        "a": torch.full((2,), float(value), requires_grad=True),
        "b": torch.tensor([[-float(value)]]),
    }


def value_of(weights):
    assert weights["a"][0] == weights["a"][1] == -weights["b"][0, 0]
    return weights["a"][0].item()


def restored(average, fresh):
    """A fresh average that took over a copy of the state of another."""
    fresh.restore({name: tensor.detach().clone() for name, tensor in average.state().items()})
    return fresh


def test_moving_average_by_hand():
    average = MovingAverage(weights_of(0), decay=0.9)
    average.after_update(weights_of(11), 1)  # decay 2/11: 0 + 9/11 · 11
    assert value_of(average.at_validation({})) == pytest.approx(9)
    average.after_update(weights_of(1), 2)  # decay 3/12: 0.25 · 9 + 0.75 · 1
    assert value_of(average.at_validation({})) == pytest.approx(3)
    average.after_update(weights_of(13), 100)  # 101/110 is more than 0.9: 0.9 · 3 + 0.1 · 13
    assert value_of(average.at_validation({})) == pytest.approx(4)


def test_last_average_by_hand():
    average, weights = LastAverage(2), weights_of(1)
    assert value_of(average.at_validation(weights)) == 1
    with torch.no_grad():
        weights["a"] += 100  # the average has a copy
    found = [value_of(average.at_validation(weights_of(value))) for value in (4, 10)]
    assert found == [2.5, 7]  # (1 + 4) / 2; (4 + 10) / 2


def test_looking_between_validations_takes_nothing_in():
    average = LastAverage(3)
    average.at_validation(weights_of(1))
    assert value_of(average.between(weights_of(5))) == 3
    assert value_of(average.between(weights_of(7))) == 4
    assert value_of(average.at_validation(weights_of(2))) == 1.5  # (1 + 2) / 2


def test_no_average_is_the_weights_themselves():
    average, weights = Average(), weights_of(6)
    average.after_update(weights, 1)
    assert average.at_validation(weights) is weights and average.between(weights) is weights
    assert average.state() == {}
    average.restore({})


def test_a_restored_average_goes_on_alike():
    moving = MovingAverage(weights_of(0), 0.9)
    moving.after_update(weights_of(11), 1)
    again = restored(moving, MovingAverage(weights_of(77), 0.9))
    for each in (moving, again):
        each.after_update(weights_of(1), 2)
    assert value_of(again.at_validation({})) == value_of(moving.at_validation({}))


@pytest.mark.parametrize("seen", [0, 1, 10, 12])
def test_a_restored_last_average_goes_on_alike(seen):
    average = LastAverage(11)  # places of one digit and of two
    for value in range(seen):
        average.at_validation(weights_of(value * value))
    again = restored(average, LastAverage(11))
    for value in (1000, 2000):
        found = [value_of(each.at_validation(weights_of(value))) for each in (average, again)]
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "kind"), [("none", Average), ("ema", MovingAverage), ("last", LastAverage)]
)
def test_settings_name_the_average(name, kind):
    average = make_average(TrainSettings(average=name), weights_of(1))
    assert type(average) is kind
    assert getattr(average, "decay", 0.999) == 0.999 and getattr(average, "count", 5) == 5
