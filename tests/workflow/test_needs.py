"""What jobs ask for, against sums by hand and against what was measured."""

from pathlib import Path

import pytest
from workflow_modules import load

from headcount.base.settings.experiment import load_experiment


@pytest.fixture
def needs(monkeypatch):
    return load(monkeypatch, "needs")


def settings(name: str, **train):
    found = load_experiment(name, Path("config"))
    return found.model_copy(update={"train": found.train.model_copy(update=train)})


def test_parameters_of_quickstart_by_hand(needs):
    """2 + 2 layers, width 96, inside 256: 6 attentions of 4 matrices; 4 times two; 1,000 pieces."""
    attention, inner, words = 6 * 4 * 96**2, 4 * 2 * 96 * 256, 1000 * 96
    found = settings("quickstart")
    assert found.bpe.joint
    assert needs.parameters(found) == attention + inner + words == 513_792


@pytest.mark.parametrize(
    ("name", "tokens", "measured"),
    [("bench", 4096, 1645), ("bench_base", 4096, 5424), ("multi30k_short", 1500, 788)],
)
def test_a_training_asks_for_what_it_took_and_at_most_twice_that(needs, name, tokens, measured):
    """Peaks of docs/history/speed.md, and of rule train on Multi30k."""
    asked = needs.training_mb(settings(name, batch_tokens=tokens))
    assert measured < asked < 2 * measured


def test_minutes_grow_with_updates_and_have_an_end(needs):
    """6 operations of 513,792 parameters and 1,000 positions: 3.08e9 an update.

    At 2e10 in a second an update takes 0.154 s, so 1,000 take 154 s: three minutes, and ten more.
    """
    found = settings("quickstart", device="cpu", threads=1)
    assert needs.training_minutes(found, 1000) == 10 + 3
    assert needs.training_minutes(found, 10**9) == 2880
    assert needs.training_minutes(settings("quickstart", device="cuda"), 1000) == 10 + 1


def test_each_attempt_asks_for_more(needs, monkeypatch):
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    asked = needs.Needs(plan).job("decode", 700)["mem_mb"]
    assert [asked({}, attempt=n) for n in (1, 2, 3)] == [700, 1400, 2100]
    minutes = needs.Needs(plan).training()["runtime"]
    once = minutes({"run": "baseline"}, attempt=1)
    assert minutes({"run": "baseline"}, attempt=2) == 2 * once == 26  # thirteen; see above
