"""Heads removed one by one, and all but one of a layer, from one trained model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Differences,
    MaskedInputs,
    score_cells,
)
from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.ranking import Heads
from headcount.base.settings.ablation import AblationSettings

COLUMNS = ("test_set", "order", "index", "kind", "layer", "head", *SCORE_COLUMNS)
DEV = "dev"
"""Chooses the head that a layer keeps; the test sets only score it."""

SAMPLES_PER_HEAD = 200
"""Resamples of the bootstrap: p can be as small as 1 / 200 even once Holm's correction has
multiplied it by the number of heads."""


@dataclass(frozen=True)
class Ablated:
    """Heads to silence together, and the one head that they are about."""

    order: str  # single: that head is silent; all_but_one: the others of its layer are
    index: int  # place of the head in flat order, from 1
    head: Head
    silent: Heads

    def cells(self) -> list[Any]:
        """Order, index, kind, layer and head."""
        return [self.order, self.index, *self.head]


def write_ablation(
    inputs: MaskedInputs,
    settings: AblationSettings,
    out: Path,
    origin: dict[str, Any],
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
    grid = masked.model.grid
    tests = inputs.read_tests(with_dev(settings), settings.sentences)
    samples = resamples_for(grid)

    def compare(test: str, sets: list[Heads]) -> Differences:
        ((_, found),) = masked.compare({test: tests[test]}, sets, samples)
        return found

    rows = ablation_rows(grid, list(tests), compare)
    sets = [point.silent for point in (*single_heads(grid), *all_but_one(grid))]
    facts = {**masked.describe(tests, sets), "dev": DEV, "provenance": origin}
    write_result(out, COLUMNS, rows, facts)


def resamples_for(grid: HeadGrid) -> int:
    """How many resamples the tests of all heads of a model need; see `SAMPLES_PER_HEAD`."""
    return max(1000, SAMPLES_PER_HEAD * grid.size)


def ablation_rows(
    grid: HeadGrid, tests: list[str], compare: Callable[[str, list[Heads]], Differences]
) -> list[list[Any]]:
    """The cells of `COLUMNS` for dev, which must come first, and other test sets.

    `compare` tells what sets of silent heads cost on a test set.
    """
    single, alone = list(single_heads(grid)), list(all_but_one(grid))
    rows = []
    for test in tests:
        points = single + alone
        found = compare(test, [point.silent for point in points])
        rows.append([test, "none", 0, "", "", "", *score_cells(grid, (), found)])
        rows += [
            [test, *point.cells(), *score_cells(grid, point.silent, found)] for point in points
        ]
        if test == DEV:
            alone = best_in_layers(alone, found)
    return rows


def with_dev(settings: AblationSettings) -> list[str]:
    """Names of the test sets, dev before all others."""
    return [DEV, *(test for test in settings.test_sets if test != DEV)]


def first_test(settings: AblationSettings) -> list[str]:
    """The first of the test sets, which scores pruning. Raises UserError if none is named."""
    if not settings.test_sets:
        raise UserError("--test-sets: expected the test set that scores pruning, found none")
    return settings.test_sets[:1]


def single_heads(grid: HeadGrid) -> Iterator[Ablated]:
    """Every head, silent alone."""
    for place, head in enumerate(grid.heads()):
        yield Ablated("single", place + 1, head, (place,))


def all_but_one(grid: HeadGrid) -> Iterator[Ablated]:
    """Every head of a layer that has others, with all the others silent."""
    heads = grid.heads()
    for _, _, span in grid.layers():
        places = range(span.start, span.stop)
        for kept in places if len(places) > 1 else ():
            others = tuple(place for place in places if place != kept)
            yield Ablated("all_but_one", kept + 1, heads[kept], others)


def best_in_layers(alone: list[Ablated], found: Differences) -> list[Ablated]:
    """Of each kind and layer the head that BLEU is highest with; of equal ones the first."""
    best: dict[tuple[str, int], Ablated] = {}
    for point in alone:
        layer = point.head[:2]
        if layer not in best or found[point.silent].bleu > found[best[layer].silent].bleu:
            best[layer] = point
    return list(best.values())
