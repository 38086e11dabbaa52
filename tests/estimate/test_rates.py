"""Speeds measured on this machine."""

import time

import pytest

from headcount.base.settings.experiment import Experiment
from headcount.estimate import rates
from headcount.estimate.rates import FIXED, Sentences, measure_machine
from headcount.estimate.work import UNITS

SMALL = {
    "pairs": ["a.x-y"],
    "model": {
        "preset": "tiny",
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 16,
        "heads": 2,
    },
    "masking": {"groups": 2},
    "train": {"updates": 9, "warmup_updates": 1, "batch_tokens": 60, "accumulate": 2},
}


def test_drawn_sentences_have_the_lengths_that_are_asked_for():
    text = Sentences(3, 5, 40).drawn(4)
    assert [len(ids) for ids in text.src] == 4 * [3] and [len(ids) for ids in text.tgt] == 4 * [5]
    assert all(4 <= number < 40 for side in (text.src, text.tgt) for ids in side for number in ids)


def test_every_unit_has_a_speed(monkeypatch):
    monkeypatch.setattr(rates, "SECONDS", 0.01)
    machine = measure_machine(Experiment(**SMALL), Sentences(6, 9, 40), 1.5)
    assert set(machine.rates) == set(UNITS) and all(value > 0 for value in machine.rates.values())
    assert machine.rates["starts"] == 1.5 and machine.rates.items() >= FIXED.items()
    assert machine.device == "cpu" and machine.memory > 10**7


def test_seconds_are_those_of_one_round(monkeypatch):
    monkeypatch.setattr(rates, "SECONDS", 0.05)
    assert rates._seconds(lambda: time.sleep(0.02)) == pytest.approx(0.02, rel=0.5)
