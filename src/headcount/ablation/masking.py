"""Masking experiments: a model's test sets under groups of heads by importance, and at random."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.ablation.masked_bleu import SCORE_COLUMNS, MaskedInputs, write_points
from headcount.base.addresses import HeadGrid
from headcount.base.head_values import read_head_values
from headcount.base.ranking import Heads, MaskedSet, Ranking, random_sets, rank_heads, ranked_sets
from headcount.base.settings.ablation import MaskingSettings
from headcount.heads.importance_run import read_importance
from headcount.store.model_folder import ModelFolder

COLUMNS = ("test_set", "ranking", "order", "index", "draw", *SCORE_COLUMNS)


@dataclass(frozen=True)
class Point:
    """One set of heads to mask, and whose ranking it comes from."""

    ranking: str  # own or baseline; that of random sets, which are every model's, is own
    masked: MaskedSet

    @property
    def heads(self) -> Heads:
        """Flat positions of the heads, sorted."""
        return self.masked.heads

    def cells(self) -> list[Any]:
        """Ranking, order, index and draw."""
        draw = "" if self.masked.draw is None else self.masked.draw
        return [self.ranking, self.masked.order, self.masked.index, draw]


def write_masking(
    inputs: MaskedInputs,
    rankings: Mapping[str, Path],
    settings: MaskingSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU under every mask of the experiment, see `write_points`.

    `rankings`: importance.csv by name, `own` and, where it is another's, `baseline`; `seed` is
    that of the random masks. Raises UserError, before anything is translated, if there are more
    groups than heads, `own` is another model's, a test set has no sentence or its sides differ in
    length.
    """
    masked = inputs.load()
    ranked = read_rankings(rankings, inputs.model, masked.model.grid)
    points = list_points(masked.model.grid, settings, ranked, seed)
    tests = inputs.read_tests(settings.test_sets, settings.sentences)
    found = dict(masked.compare(tests, [point.heads for point in points]))
    write_points(masked, tests, points, found, COLUMNS, out, origin)


def read_rankings(
    rankings: Mapping[str, Path], model: ModelFolder, grid: HeadGrid
) -> dict[str, Ranking]:
    """Heads, most important first, by name. Raises UserError if `own` is another model's."""
    found = {}
    for name, path in rankings.items():
        values = (
            read_importance(path, model, grid)
            if name == "own"
            else read_head_values(path, "importance", grid)
        )
        found[name] = rank_heads(values)
    return found


def list_points(
    grid: HeadGrid, settings: MaskingSettings, rankings: Mapping[str, Ranking], seed: int
) -> list[Point]:
    """Every point of the experiment: the sets of each ranking, then the random ones."""
    points = []
    for name, ranking in rankings.items():
        points += [Point(name, found) for found in ranked_sets(ranking, settings.groups)]
    control = random_sets(grid.size, settings.groups, settings.draws, seed)
    return points + [Point("own", found) for found in control]
