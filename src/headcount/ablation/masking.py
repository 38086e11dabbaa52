"""Masking experiments: a model's test sets under groups of heads by importance, and at random."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    MaskedInputs,
    describe_work,
    score_cells,
    write_scores,
)
from headcount.base.addresses import HeadGrid
from headcount.base.head_values import read_head_values
from headcount.base.ranking import MaskedSet, Ranking, random_sets, rank_heads, ranked_sets
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.masking import MaskingSettings
from headcount.heads.importance_run import read_importance

COLUMNS = ("test_set", "ranking", "order", "index", "draw", *SCORE_COLUMNS)


@dataclass(frozen=True)
class MaskingInputs(MaskedInputs):
    """What a masking experiment reads."""

    rankings: dict[str, Path]  # importance.csv by name: own, and baseline where it is another's

    def files(self, settings: MaskingSettings) -> list[Path]:
        """The files that shape the outcome."""
        return [*super().files(settings), *self.rankings.values()]

    def read_rankings(self, grid: HeadGrid) -> dict[str, Ranking]:
        """Heads, most important first, by name. Raises UserError if `own` is another model's."""
        found = {}
        for name, path in self.rankings.items():
            values = (
                read_importance(path, self.model, grid)
                if name == "own"
                else read_head_values(path, "importance", grid)
            )
            found[name] = rank_heads(values)
        return found


@dataclass(frozen=True)
class Point:
    """One set of heads to mask, and whose ranking it comes from."""

    ranking: str  # own or baseline; that of random sets, which are every model's, is own
    masked: MaskedSet

    def cells(self) -> list[Any]:
        """Ranking, order, index and draw."""
        draw = "" if self.masked.draw is None else self.masked.draw
        return [self.ranking, self.masked.order, self.masked.index, draw]


def write_masking(
    inputs: MaskingInputs,
    settings: MaskingSettings,
    decode: DecodeSettings,
    language: str,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU under every mask of the experiment as CSV, one mask of one test set a row.

    Deltas, their 95 % intervals and p-values are against no mask, by paired bootstrap. `language`
    is the target's, for sacreBLEU; `seed` is that of the random masks. Beside `out` goes a JSON of
    the same name: sentences, distinct masks, search, and `origin`. Raises UserError, before
    anything is translated, if there are more groups than heads, a ranking is another model's, a
    test set has no sentence or its sides differ in length.
    """
    masked = inputs.load(decode)
    grid = masked.model.grid
    rankings = inputs.read_rankings(grid)
    points = list_points(grid, settings, rankings, seed)
    tests = inputs.read_tests(settings)
    sets = [point.masked.heads for point in points]
    rows = [
        [test, *point.cells(), *score_cells(grid, point.masked.heads, differences)]
        for test, differences in masked.compare(tests, sets, language)
        for point in points
    ]
    facts = {**describe_work(grid, tests, sets), "provenance": origin}
    write_scores(out, COLUMNS, rows, facts, decode)


def list_points(
    grid: HeadGrid, settings: MaskingSettings, rankings: Mapping[str, Ranking], seed: int
) -> list[Point]:
    """Every point of the experiment: the sets of each ranking, then the random ones."""
    points = []
    for name, ranking in rankings.items():
        points += [Point(name, found) for found in ranked_sets(ranking, settings.groups)]
    control = random_sets(grid.size, settings.groups, settings.draws, seed)
    return points + [Point("own", found) for found in control]
