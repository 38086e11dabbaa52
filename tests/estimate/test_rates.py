"""Speeds measured on this machine."""

import time

import pytest

from headcount.base.settings.experiment import Experiment
from headcount.estimate import rates
from headcount.estimate.rates import FIXED, Sentences, measure_machine
from headcount.estimate.work import UNITS
from headcount.model.machine import pick_device

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
    "train": {
        "updates": 9,
        "warmup_updates": 1,
        "batch_tokens": 60,
        "accumulate": 2,
        "precision": "auto",
    },
}


def test_drawn_sentences_have_the_lengths_that_are_asked_for():
    text = Sentences(3, 5, 40).drawn(4)
    assert [len(ids) for ids in text.src] == 4 * [3] and [len(ids) for ids in text.tgt] == 4 * [5]
    assert all(4 <= number < 40 for side in (text.src, text.tgt) for ids in side for number in ids)


KNOWN = {"starts": 1.5, "figures": 0.5}
CLASSIFIERS = {"classifiers": {"models": {"own": {"path": "own"}}}, "fine_tuning": {"batch": 2}}


def test_every_unit_has_a_speed(monkeypatch):
    monkeypatch.setattr(rates, "SECONDS", 0.01)
    monkeypatch.setattr(rates, "LONG", 0.01)
    machine = measure_machine(Experiment(**SMALL, **CLASSIFIERS), Sentences(6, 9, 40), KNOWN)
    assert set(machine.rates) == set(UNITS) and all(value > 0 for value in machine.rates.values())
    assert machine.rates.items() >= {**FIXED, **KNOWN}.items()
    assert machine.device == pick_device("auto").type and machine.memory > 10**7


def test_without_pairs_only_a_classifiers_layer_is_measured(monkeypatch):
    monkeypatch.setattr(rates, "SECONDS", 0.01)
    monkeypatch.setattr(rates, "LONG", 0.01)
    machine = measure_machine(Experiment(**CLASSIFIERS), None, KNOWN)
    assert set(machine.rates) == {*FIXED, *KNOWN, "teraflops"} and machine.parameters == 0


def test_seconds_are_those_of_one_round(monkeypatch):
    monkeypatch.setattr(rates, "SECONDS", 0.05)
    assert rates._seconds(lambda: time.sleep(0.02)) == pytest.approx(0.02, rel=0.5)


def test_a_long_round_is_not_repeated(monkeypatch):
    monkeypatch.setattr(rates, "LONG", 0.01)
    rounds = []
    seconds = rates._seconds(lambda: rounds.append(time.sleep(0.02)))
    assert len(rounds) == 1 and seconds == pytest.approx(0.02, rel=0.5)
