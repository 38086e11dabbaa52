"""Means over seeds and random draws, and the spread of the values around them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headcount.analysis.frames import grouped

DRAWS = "range of draws"
SEEDS = "standard deviation over seeds"
BOOTSTRAP = "bootstrap, 95 %"

_DELTA = ["delta", "delta_low", "delta_high"]


def over_seeds(
    rows: pd.DataFrame,
    by: list[str],
    value: str = "score",
    means: Sequence[str] = (),
    draw: str = "",
    bootstrap: str = BOOTSTRAP,
) -> pd.DataFrame:
    """Return the mean of `value` over seeds for every group of `by`, in order of appearance.

    Draws of one seed are averaged first, so that every seed counts once. `spread` names the
    interval from `low` to `high`. It is `DRAWS` where a seed has several rows or `draw` a number,
    else `SEEDS` (mean ± standard deviation, ddof 1) where there are several seeds, else the text
    `bootstrap`, with the interval of `delta` laid around the control's value.
    """
    rows = rows.astype(dict.fromkeys([value, *means, *_DELTA], float))
    groups, seeds = grouped(rows, by), grouped(rows, [*by, "seed"])[value].mean()
    of_seeds = grouped(seeds.reset_index(), by)[value]
    mean, deviation, count = of_seeds.mean(), of_seeds.std(), of_seeds.size()
    drawn = groups.size() > count
    if draw:
        drawn |= groups[draw].count() > 0
    delta = groups[_DELTA].first()
    points = pd.DataFrame({value: mean, **{name: groups[name].mean() for name in means}})
    for side, sign in (("low", -1), ("high", 1)):
        around_control = mean - delta["delta"] + delta[f"delta_{side}"]
        one_draw = (mean + sign * deviation).where(count > 1, around_control)
        extreme = groups[value].min() if side == "low" else groups[value].max()
        points[side] = extreme.where(drawn, one_draw)
    cases = [drawn, count > 1, points["low"].notna()]
    points["spread"] = np.select(cases, [DRAWS, SEEDS, bootstrap], None)
    return points.assign(seeds=count).reset_index()
