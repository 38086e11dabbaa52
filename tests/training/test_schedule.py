"""Learning rates by hand."""

import math

import pytest

from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.training.optimiser import learning_rate


def rate(update, **changes):
    settings = TrainSettings(**{"peak_lr": 0.01, "warmup_updates": 4, "updates": 20, **changes})
    return learning_rate(settings, update)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine"])
def test_warm_up_is_a_straight_line(schedule):
    found = [rate(update, schedule=schedule) for update in (1, 2, 3, 4)]
    assert found == pytest.approx([0.0025, 0.005, 0.0075, 0.01])
    assert rate(20, schedule=schedule, warmup_updates=20) == pytest.approx(0.01)


def test_inverse_square_root_is_the_formula_of_the_paper():
    # d^-0.5 · min(u^-0.5, u · w^-1.5) with d = 512, w = 4000
    peak = (512 * 4000) ** -0.5
    for update in (1, 1234, 4000, 4001, 25000):
        paper = 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
        found = rate(update, peak_lr=peak, warmup_updates=4000, updates=30000)
        assert found == pytest.approx(paper)


def test_cosine_by_hand():
    # From update 4 to 20; the floor is 2 % of 0.01.
    found = [rate(update, schedule="cosine") for update in (8, 12, 16, 20)]
    root = math.sqrt(0.5)  # cos 45°
    assert found == pytest.approx(
        [
            0.01 * (0.02 + 0.98 * (1 + root) / 2),
            0.01 * 0.51,
            0.01 * (0.02 + 0.98 * (1 - root) / 2),
            0.0002,
        ]
    )


def test_fine_tuning_has_no_patience():
    train = TrainSettings(updates=9, warmup_updates=1, patience=2)
    assert GatesSettings(updates=5, warmup_updates=1).fine_tuning(train).patience == 0
