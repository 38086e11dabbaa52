"""Means over seeds and draws, with the interval that fits the number of seeds and draws."""

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.scores import BOOTSTRAP, DRAWS, SEEDS, over_seeds

COLUMNS = ["run", "seed", "draw", "score", "delta", "delta_low", "delta_high"]


def _rows(*rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def test_several_seeds_have_their_standard_deviation() -> None:
    rows = _rows(("a", 1, None, 10, -1, -2, 0), ("a", 2, None, 14, -1, -2, 0))

    (point,) = over_seeds(rows, ["run"]).to_dict("records")

    assert point["score"] == 12
    assert (point["low"], point["high"]) == pytest.approx((12 - 8**0.5, 12 + 8**0.5))
    assert (point["spread"], point["seeds"]) == (SEEDS, 2)


def test_one_seed_has_the_interval_of_its_difference_around_the_control() -> None:
    rows = _rows(("a", 1, None, 10, -2, -3, -0.5))  # the control has 12

    (point,) = over_seeds(rows, ["run"], bootstrap="test").to_dict("records")

    assert (point["low"], point["high"]) == (9, 11.5)
    assert (point["spread"], point["seeds"]) == ("test", 1)
    (point,) = over_seeds(rows, ["run"], "delta").to_dict("records")
    assert (point["delta"], point["low"], point["high"]) == (-2, -3, -0.5)


def test_draws_have_their_range_and_a_seed_counts_once() -> None:
    rows = _rows(("a", 1, 1, 1, 0, 0, 0), ("a", 1, 2, 3, 0, 0, 0), ("a", 2, 1, 8, 0, 0, 0))

    (point,) = over_seeds(rows, ["run"]).to_dict("records")

    assert point["score"] == 5  # of 2 and 8
    assert (point["low"], point["high"]) == (1, 8)
    assert (point["spread"], point["seeds"]) == (DRAWS, 2)


def test_one_numbered_draw_is_a_draw_where_the_column_is_named() -> None:
    rows = _rows(("a", 1, 1, 4, -1, -2, 0), ("b", 1, None, 4, -1, -2, 0))

    points = over_seeds(rows, ["run"], draw="draw")

    assert points["spread"].tolist() == [DRAWS, BOOTSTRAP]
    assert points["low"].tolist() == [4, 3]


def test_the_control_itself_has_no_interval() -> None:
    rows = _rows(("a", 1, None, 10, np.nan, np.nan, np.nan))

    points = over_seeds(rows, ["run"])

    assert points[["low", "high", "spread"]].isna().all(axis=None)
    assert points["score"].tolist() == [10]


def test_groups_keep_their_order_and_missing_keys_and_have_means_of_other_columns() -> None:
    rows = _rows(
        ("b", 1, None, 1, 0, 0, 0), ("b", 2, None, 2, 0, 0, 0), (None, 1, None, 4, 0, 0, 0)
    ).assign(heads_left=[4, 5, 7])

    points = over_seeds(rows, ["run"], means=["heads_left"])

    assert points["run"].fillna("none").tolist() == ["b", "none"]
    assert points["heads_left"].tolist() == [4.5, 7]
