"""Mean BLEU over a pruning curve, and the difference of two curves, by bootstrap of sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headcount.ablation.pruning_orders import ALL, Curve
from headcount.base.ranking import Heads
from headcount.scoring.bootstrap import SEED, interval, p_value

AREA_COLUMNS = ("test_set", "scope", "order", "area", "low", "high", "against", "delta")
AREA_COLUMNS += ("delta_low", "delta_high", "p")
_OF_ALL, _OF_KINDS = (ALL, "importance"), ("dec_enc", "importance")


def area_rows(
    test: str, curves: Sequence[Curve], scores: Mapping[Heads, np.ndarray]
) -> list[list[Any]]:
    """The cells of `AREA_COLUMNS`, a row for each order of each scope.

    The area is the mean BLEU over shares of heads pruned from 0 to 1, in points, by the trapezoid
    rule; of random orders the mean, whose resamples draw orders as well as sentences. Orders over
    all heads are held against importance, the two self-attentions against encoder-decoder
    attention: `delta` is the area minus that of `against` (empty for these two themselves), its
    interval and p by paired bootstrap. `scores`: BLEU of the test set, then of its resamples, under
    each set of heads.
    """
    areas: dict[tuple[str, str], list[np.ndarray]] = {}
    for curve in curves:
        if len(curve.sets) > 1:
            points = np.stack([scores[heads] for heads in curve.sets])
            areas.setdefault((curve.scope, curve.order), []).append(_area(points))
    means = {key: _over_draws(np.stack(found)) for key, found in areas.items()}
    rows = []
    for (scope, order), values in means.items():
        reference = _OF_ALL if scope == ALL else _OF_KINDS
        cells = [test, scope, order, float(values[0]), *interval(values[1:])]
        if (scope, order) == reference or reference not in means:
            rows.append([*cells, *[""] * 5])
            continue
        deltas = values - means[reference]
        judged = (float(deltas[0]), *interval(deltas[1:]), p_value(float(deltas[0]), deltas[1:]))
        rows.append([*cells, "/".join(reference), *judged])
    return rows


def _over_draws(areas: np.ndarray) -> np.ndarray:
    """Mean of [draws, 1 + resamples]; each resample takes as many draws, with repetition."""
    chosen = np.random.default_rng(SEED).integers(len(areas), size=areas.shape)
    chosen[:, 0] = np.arange(len(areas))
    return np.take_along_axis(areas, chosen, axis=0).mean(axis=0)


def _area(points: np.ndarray) -> np.ndarray:
    """Mean height of each column of [points, columns] over equal steps."""
    return ((points[1:] + points[:-1]) / 2).mean(axis=0)
