"""BLEU of one pair with heads masked by the rankings of all pairs that share the model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.masked_bleu import SCORE_COLUMNS, Inputs, Point, write_points
from headcount.ablation.pruning_orders import least_important
from headcount.base.ranking import drawn_heads
from headcount.base.settings.data import TransferSettings
from headcount.heads.importance import read_importance

COLUMNS = ("test_set", "pruned_on", "share", "draw", *SCORE_COLUMNS)
NONE, MEAN, RANDOM = "none", "mean", "random"
"""Names in the column `pruned_on` beside pairs: no head, the mean ranking, and random heads."""


def write_transfer(
    inputs: Inputs,
    importance: Mapping[str, Path],
    tests: Sequence[str],
    settings: TransferSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU with the least important heads of every pair masked, see `write_points`.

    `importance`: importance.csv of the model by pair. `seed`: of the random heads. Raises
    UserError, before anything is translated, if importance was measured on another model.
    """
    masked = inputs.load()
    values = {
        pair: read_importance(path, inputs.model, masked.grid) for pair, path in importance.items()
    }
    points = transfer_points(values, settings, seed)
    texts = inputs.read_tests(tests, settings.sentences)
    sets = [point.heads for point in points]
    scores = {name: masked.compare(text, sets) for name, text in texts.items()}
    write_points(masked, texts, points, scores, COLUMNS, out, origin)


def transfer_points(
    importance: Mapping[str, np.ndarray], settings: TransferSettings, seed: int
) -> list[Point]:
    """Return no head, then a point for each share and ranking. Cells are ranking, share and draw.

    The mean ranking is by the mean over pairs of importance divided by its sum.
    """
    shared = np.mean([values / (np.abs(values).sum() or 1) for values in importance.values()], 0)
    heads = range(len(shared))
    rankings = {**importance, MEAN: shared}
    orders = {name: least_important(heads, values) for name, values in rankings.items()}
    points = [Point((NONE, 0, ""), ())]
    for share in settings.shares:
        count = round(share * len(heads))
        points += [Point((n, share, ""), tuple(sorted(o[:count]))) for n, o in orders.items()]
        for draw in range(1, settings.draws + 1):
            points.append(Point((RANDOM, share, draw), drawn_heads(heads, count, seed, draw)))
    return points
