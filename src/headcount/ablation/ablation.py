"""Heads removed one by one, and all but one of a layer, from one trained model."""

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Differences,
    Inputs,
    Point,
    point_rows,
)
from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_csv, write_result
from headcount.base.ranking import Heads
from headcount.base.settings.heads import AblationSettings

COLUMNS = ("test_set", "order", "index", "kind", "layer", "head", *SCORE_COLUMNS)
DEV = "dev"
"""Chooses the head that a layer keeps. The test sets only score it."""

SAMPLES_PER_HEAD = 200
"""Resamples of the bootstrap: p can be as small as 1 / 200 even once Holm's correction has
multiplied it by the number of heads."""

Compare = Callable[[str, list[Heads]], Differences]
"""Compares the score of a test set with sets of masked heads with its score without a mask."""


def write_ablation(
    inputs: Inputs, settings: AblationSettings, out: Path, origin: dict[str, Any]
) -> None:
    """Write BLEU without each head, and with one head alone in its layer, as CSV.

    Order `none` masks no head, `single` that head, `all_but_one` every other head of its kind and
    layer: on dev for each head, on a test set for the head that is best on dev. Deltas, their 95 %
    intervals and p-values are against no mask, by paired bootstrap. A JSON beside `out` has the
    search, sentences, distinct masks, and `origin`. Raises UserError where `Inputs.read_tests`
    does, before anything is translated.
    """
    masked = inputs.load()
    grid, tests = masked.grid, inputs.read_tests(with_dev(settings), settings.sentences)
    samples = resamples_for(grid)
    rows = ablation_rows(
        grid, list(tests), lambda test, sets: masked.compare(tests[test], sets, samples)
    )
    points = chain(single_heads(grid), *all_but_one(grid))
    facts = masked.describe(tests, (point.heads for point in points))
    write_result(out, COLUMNS, rows, {**facts, "dev": DEV, "provenance": origin})


def resamples_for(grid: HeadGrid) -> int:
    """Return how many resamples the tests of all heads of a model need, see `SAMPLES_PER_HEAD`."""
    return max(1000, SAMPLES_PER_HEAD * grid.size)


def ablation_rows(grid: HeadGrid, tests: list[str], compare: Compare) -> list[list[Any]]:
    """Return the cells of `COLUMNS` for dev, which must come first, and other test sets.

    A test set has of each layer the head with the highest score on dev, of equal ones the first.
    """
    layers = all_but_one(grid)
    whole, alone = Point(("none", 0, "", "", ""), ()), list(chain(*layers))
    rows = []
    for test in tests:
        points = [whole, *single_heads(grid), *alone]
        scores = compare(test, [point.heads for point in points])
        rows += point_rows(grid, test, points, scores)
        if test == DEV:
            alone = [max(layer, key=lambda point: scores[point.heads].bleu) for layer in layers]
    return rows


def with_dev(settings: AblationSettings) -> list[str]:
    """Return the names of the test sets, dev before all others."""
    return [DEV, *(test for test in settings.test_sets if test != DEV)]


def first_test(settings: AblationSettings) -> list[str]:
    """Return the first test set, which scores pruning. Raises UserError if none is named."""
    if not settings.test_sets:
        raise UserError("--test-sets: expected the test set that scores pruning, found none")
    return settings.test_sets[:1]


def single_heads(grid: HeadGrid) -> list[Point]:
    """Return every head, masked alone. Cells are order, number from 1, kind, layer and head."""
    heads = enumerate(grid.heads())
    return [Point(("single", place + 1, *head), (place,)) for place, head in heads]


def all_but_one(grid: HeadGrid) -> list[list[Point]]:
    """Return for every layer of several heads each of its heads, with all its others masked."""
    layers = [range(grid.size)[span] for _, _, span in grid.layers()]
    return [[_alone(grid, kept, layer) for kept in layer] for layer in layers if len(layer) > 1]


def _alone(grid: HeadGrid, kept: int, layer: Sequence[int]) -> Point:
    others = tuple(place for place in layer if place != kept)
    return Point(("all_but_one", kept + 1, *grid.heads()[kept]), others)


def read_single_effects(path: Path, grid: HeadGrid, columns: Sequence[str] = COLUMNS) -> np.ndarray:
    """Return the change on dev without each head, [heads] in flat order, negative is worse.

    Raises UserError unless the file has one change for each head of this model and for no other.
    """
    rows = (row for _, row in read_csv(path, columns))
    single = [row for row in rows if (row["test_set"], row["order"]) == (DEV, "single")]
    heads = [Head(row["kind"], int(row["layer"]), int(row["head"])) for row in single]
    if heads != grid.heads():
        raise UserError(
            f"{path}: expected the effects on {DEV} of the {grid.size} heads of this model, found "
            f"{len(heads)}; this file belongs to another model"
        )
    return np.array([float(row["delta"]) for row in single])
