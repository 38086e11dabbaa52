"""Speed of models without heads, and the time of importance."""

import math

import pandas as pd
import pytest

from headcount.analysis.tables.michel.speed import importance_time, speed

MODEL = {"pair": "a-b", "run": "baseline", "seed": 1}


def times():
    """Return two repeats of a whole model and of one with half of the heads and twice the steps."""
    columns = ["model", "heads_left", "repeat", "seconds", "steps"]
    rows = [(0, 8, 1, 1.0, 40), (50, 4, 1, 1.0, 80), (0, 8, 2, 2.0, 40), (50, 4, 2, 1.6, 80)]
    names = {"phase": "decode", "batch_size": 4, "parameters": 9, "sentences": 10}
    return pd.DataFrame(rows, columns=columns).assign(**MODEL, **names)


def test_speed_is_compared_by_steps():
    whole, half = speed(times()).to_dict("records")
    assert (whole["mean"], whole["steps"], half["steps"], half["repeats"]) == (7.5, 4, 8, 2)
    assert whole["sd"] == pytest.approx(math.sqrt(12.5))
    assert half["speedup"] == pytest.approx(8.125 * 8 / (7.5 * 4))
    assert half["speedup_low"] * half["speedup_high"] == pytest.approx(2 * 2.5)
    assert math.isnan(whole["speedup_low"])


def test_importance_is_timed_by_geometric_means():
    rows = [
        ("importance", 1, 1.0),
        ("training", 1, 2.0),
        ("importance", 2, 4.0),
        ("training", 2, 4.5),
    ]
    raw = pd.DataFrame(rows, columns=["work", "repeat", "seconds"]).assign(**MODEL)
    (row,) = importance_time(raw).to_dict("records")
    assert (row["importance"], row["training"], row["ratio"]) == pytest.approx((2, 3, 2 / 3))
    assert row["ratio_low"] * row["ratio_high"] == pytest.approx(4 / 9) and row["repeats"] == 2
    (row,) = importance_time(raw[raw["repeat"] == 1]).to_dict("records")
    assert math.isnan(row["ratio_low"])
