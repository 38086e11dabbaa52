"""Means over seeds, draws and repeats, with the interval that fits their numbers."""

import math
from math import nan

import pandas as pd
import pytest

from headcount.analysis.captions import speedup_noise
from headcount.analysis.scores import BOOTSTRAP, DRAWS, SEEDS, over_seeds
from headcount.analysis.stats import speedups
from headcount.analysis.tables.michel.speed import importance_time, speed
from headcount.base.errors import UserError

COLUMNS = ["run", "seed", "draw", "score", "delta", "delta_low", "delta_high"]
MANY = [("b", 1, None, 1, 0, 0, 0), ("b", 2, None, 2, 0, 0, 0), (None, 1, None, 4, 0, 0, 0)]


def points(*rows, **options):
    return over_seeds(pd.DataFrame(rows, columns=COLUMNS), ["run"], **options)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", 1, None, 10, -1, -2, 0), ("a", 2, None, 14, -1, -2, 0)],
         (12, 12 - 8**0.5, 12 + 8**0.5, SEEDS, 2)),
        ([("a", 1, None, 10, -2, -3, -0.5)], (10, 9, 11.5, BOOTSTRAP, 1)),  # the control has 12
        ([("a", 1, 1, 1, 0, 0, 0), ("a", 1, 2, 3, 0, 0, 0), ("a", 2, 1, 8, 0, 0, 0)],
         (5, 1, 8, DRAWS, 2)),  # of 2 and 8: a seed counts once
        ([("a", 1, None, 10, nan, nan, nan)], (10, nan, nan, None, 1)),  # the control itself
    ],
)  # fmt: skip
def test_a_mean_has_the_interval_of_its_seeds_draws_or_sentences(rows, expected):
    (point,) = points(*rows).to_dict("records")
    numbers = [point[name] for name in ("score", "low", "high")]
    assert numbers == pytest.approx(expected[:3], nan_ok=True)
    assert (point["spread"] if pd.notna(point["spread"]) else None) == expected[3]
    assert point["seeds"] == expected[4]


def test_one_draw_other_values_and_missing_keys():
    one = points(("a", 1, 1, 4, -1, -2, 0), ("b", 1, None, 4, -1, -2, 0), draw="draw")
    assert one[["spread", "low"]].to_numpy().tolist() == [[DRAWS, 4], [BOOTSTRAP, 3]]
    (delta,) = points(("a", 1, None, 10, -2, -3, -0.5), value="delta").to_dict("records")
    assert (delta["delta"], delta["low"], delta["high"]) == (-2, -3, -0.5)
    rows = pd.DataFrame(MANY, columns=COLUMNS).assign(heads_left=[4, 5, 7])
    means = over_seeds(rows, ["run"], means=["heads_left"])
    assert means["run"].fillna("none").tolist() == ["b", "none"]
    assert means["heads_left"].tolist() == [4.5, 7]


def test_speedups_are_over_the_whole_model_of_the_same_setup():
    """Steps halve, so gains are 1 and 2; the third repeat has no pair."""
    phases = ["encode", "encode", "decode", "decode"]
    table = pd.DataFrame({"phase": phases, "model": [0, 50, 50, 0], "speed": [2.0, 3, 8, 4]})
    raw = pd.DataFrame({"model": [0, 0, 0, 50, 50], "repeat": [0, 1, 2, 0, 1], "phase": "encode"})
    raw = raw.assign(seconds=[2.0, 8, 5, 1, 2], steps=[2, 2, 2, 1, 1])
    gains = speedups(table, raw, ["phase"], 0)
    assert gains["speedup"].tolist() == [1, 1.5, 2, 1]
    with pytest.raises(UserError, match="decode"):
        speedups(table[:3], raw, ["phase"], 0)
    (row,) = gains.dropna().itertuples(index=False)
    # Two differences: quantile of t with one degree of freedom times their standard error.
    reach = math.tan(0.475 * math.pi) * math.log(2) / 2
    middle, ends = math.log(2) / 2, (math.log(row.speedup_low), math.log(row.speedup_high))
    assert row.model == 50 and ends == pytest.approx((middle - reach, middle + reach))
    once = speedups(table, raw[raw["repeat"] == 0], ["phase"], 0)
    assert once["speedup_low"].isna().all()


def test_only_intervals_that_include_1_make_a_warning():
    frame = pd.DataFrame({"speedup_low": [nan, 0.9, 1.1], "speedup_high": [nan, 1.2, 1.3]})
    frame["repeats"] = 3
    assert "1 of 2" in speedup_noise(frame)
    assert speedup_noise(frame[2:]) == "" and speedup_noise(frame[:1])


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
