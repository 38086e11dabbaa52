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
"""Chooses the head that a layer keeps; the test sets only score it."""

SAMPLES_PER_HEAD = 200
"""Resamples of the bootstrap: p can be as small as 1 / 200 even once Holm's correction has
multiplied it by the number of heads."""


def write_ablation(
    inputs: Inputs, settings: AblationSettings, out: Path, origin: dict[str, Any]
) -> None:
    """Write BLEU without each head, and with one head alone in its layer, as CSV.

    Order `none` has no head silent; `single` that head; `all_but_one` every other head of its kind
    and layer: on dev for each head, on a test set for the one that is best on dev. Deltas, their
    95 % intervals and p-values are against no mask, by paired bootstrap. Beside `out`
    goes a JSON of the same name: search, sentences, distinct masks, and `origin`. Raises
    UserError, before anything is translated, if a test set has no sentence or its sides differ
    in length.
    """
    masked = inputs.load()
    tests = inputs.read_tests(with_dev(settings), settings.sentences)
    samples = resamples_for(masked.grid)
    rows = ablation_rows(
        masked.grid, list(tests), lambda test, sets: masked.compare(tests[test], sets, samples)
    )
    points = chain(single_heads(masked.grid), *all_but_one(masked.grid))
    facts = masked.describe(tests, (point.heads for point in points))
    write_result(out, COLUMNS, rows, {**facts, "dev": DEV, "provenance": origin})


def resamples_for(grid: HeadGrid) -> int:
    """How many resamples the tests of all heads of a model need; see `SAMPLES_PER_HEAD`."""
    return max(1000, SAMPLES_PER_HEAD * grid.size)


def ablation_rows(
    grid: HeadGrid, tests: list[str], compare: Callable[[str, list[Heads]], Differences]
) -> list[list[Any]]:
    """The cells of `COLUMNS` for dev, which must come first, and other test sets.

    `compare` tells what sets of silent heads cost on a test set. A test set has of each layer the
    head that BLEU is highest with on dev, of equal ones the first.
    """
    layers = all_but_one(grid)
    whole, alone = Point(("none", 0, "", "", ""), ()), list(chain(*layers))
    rows = []
    for test in tests:
        points = [whole, *single_heads(grid), *alone]
        found = compare(test, [point.heads for point in points])
        rows += point_rows(grid, test, points, found)
        if test == DEV:
            alone = [max(layer, key=lambda point: found[point.heads].bleu) for layer in layers]
    return rows


def with_dev(settings: AblationSettings) -> list[str]:
    """Names of the test sets, dev before all others."""
    return [DEV, *(test for test in settings.test_sets if test != DEV)]


def first_test(settings: AblationSettings) -> list[str]:
    """The first of the test sets, which scores pruning. Raises UserError if none is named."""
    if not settings.test_sets:
        raise UserError("--test-sets: expected the test set that scores pruning, found none")
    return settings.test_sets[:1]


def single_heads(grid: HeadGrid) -> list[Point]:
    """Every head, silent alone; cells are order, number from 1, kind, layer and head."""
    heads = enumerate(grid.heads())
    return [Point(("single", place + 1, *head), (place,)) for place, head in heads]


def all_but_one(grid: HeadGrid) -> list[list[Point]]:
    """For every layer of several heads: each of its heads, with all its others silent."""
    heads = list(enumerate(grid.heads()))
    layers = [heads[span] for _, _, span in grid.layers()]
    return [
        [
            Point(
                ("all_but_one", kept + 1, *head),
                tuple(place for place, _ in layer if place != kept),
            )
            for kept, head in layer
        ]
        for layer in layers
        if len(layer) > 1
    ]


def read_single_effects(path: Path, grid: HeadGrid, columns: Sequence[str] = COLUMNS) -> np.ndarray:
    """BLEU change on dev without each head, [heads] in flat order; negative is worse.

    Raises UserError unless the file has one for each head of this model and for no other.
    """
    rows = (row for _, row in read_csv(path, columns))
    single = [row for row in rows if (row["test_set"], row["order"]) == (DEV, "single")]
    heads = [Head(row["kind"], int(row["layer"]), int(row["head"])) for row in single]
    if heads != grid.heads():
        raise UserError(
            f"{path}: expected the effect on {DEV} of each of {grid.size} heads, found other "
            f"heads, {len(heads)} of them; this file belongs to another model"
        )
    return np.array([float(row["delta"]) for row in single])
