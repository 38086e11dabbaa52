"""Speed-ups with intervals over repeats, and the warning where they include 1."""

import math

import pandas as pd
import pytest

from headcount.analysis.speedups import speedup_intervals, speedup_noise, speedups
from headcount.base.errors import UserError

SETUP = ["phase"]


def test_speedups_compare_with_the_whole_model_of_the_same_setup() -> None:
    table = pd.DataFrame(
        {"phase": ["encode", "encode", "decode", "decode"], "model": [0, 50, 50, 0]}
    ).assign(speed=[2.0, 3.0, 8.0, 4.0])
    assert speedups(table, "speed", SETUP, 0).tolist() == [1, 1.5, 2, 1]
    with pytest.raises(UserError, match="decode"):
        speedups(table[:3], "speed", SETUP, 0)


def test_intervals_over_pairs_of_repeats_are_symmetric_in_logarithms() -> None:
    seconds = {0: [2.0, 8.0, 5.0], 50: [1.0, 2.0, math.nan]}  # steps halve: gains 1 and 2
    rows = [
        ("encode", model, k, s) for model, times in seconds.items() for k, s in enumerate(times)
    ]
    raw = pd.DataFrame(rows, columns=["phase", "model", "repeat", "seconds"]).dropna()
    raw["steps"] = raw["model"].map({0: 2, 50: 1})
    (row,) = speedup_intervals(raw, SETUP, 0).itertuples(index=False)
    # Two differences: quantile of t with one degree of freedom times their standard error.
    reach = math.tan(0.475 * math.pi) * math.log(2) / 2
    assert row.model == 50
    assert math.log(row.speedup_low) == pytest.approx(math.log(2) / 2 - reach)
    assert math.log(row.speedup_high) == pytest.approx(math.log(2) / 2 + reach)
    once = speedup_intervals(raw[raw["repeat"] == 0], SETUP, 0)
    assert once["speedup_low"].isna().all()


def test_only_intervals_that_include_1_make_a_warning() -> None:
    frame = pd.DataFrame(
        {"speedup_low": [math.nan, 0.9, 1.1], "speedup_high": [math.nan, 1.2, 1.3]}
    ).assign(repeats=3)
    assert "1 of 2" in speedup_noise(frame)
    assert speedup_noise(frame[2:]) == ""
    assert speedup_noise(frame[:1])
