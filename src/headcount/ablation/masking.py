"""Masking experiments: heads by importance, at random, or as many as each gates run closed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Inputs,
    MaskedInputs,
    Point,
    write_points,
)
from headcount.base.addresses import HeadGrid
from headcount.base.head_values import read_head_values
from headcount.base.ranking import Ranking, drawn_heads, random_sets, rank_heads, ranked_sets
from headcount.base.settings.heads import MaskingSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.training_runs import label
from headcount.heads.importance import read_importance
from headcount.store.kept_heads import as_many_heads, read_gates
from headcount.store.model_folder import ModelFolder

COLUMNS = ("test_set", "ranking", "order", "index", "draw", *SCORE_COLUMNS)
UNTUNED_COLUMNS = ("test_set", "order", "as_run", "draw", *SCORE_COLUMNS)


def write_masking(
    inputs: Inputs,
    rankings: Mapping[str, Path],
    settings: MaskingSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU under every mask of the experiment, see `write_points`.

    `rankings`: importance.csv by name, `own` and, for another model, `baseline`. `seed`: of the
    random masks. Raises UserError, before anything is translated, if there are more groups than
    heads or `own` is another model's.
    """
    masked = inputs.load()
    ranked = read_rankings(rankings, inputs.model, masked.grid)
    points = list_points(masked.grid, settings, ranked, seed)
    tests = inputs.read_tests(settings.test_sets, settings.sentences)
    sets = [point.heads for point in points]
    scores = {name: masked.compare(test, sets) for name, test in tests.items()}
    write_points(masked, tests, points, scores, COLUMNS, out, origin)


def read_rankings(
    rankings: Mapping[str, Path], model: ModelFolder, grid: HeadGrid
) -> dict[str, Ranking]:
    """Return heads, most important first, by name. Raises UserError if `own` is another model's."""
    values = {
        name: read_importance(path, model, grid)
        if name == "own"
        else read_head_values(path, "importance", grid)
        for name, path in rankings.items()
    }
    return {name: rank_heads(importance) for name, importance in values.items()}


def list_points(
    grid: HeadGrid, settings: MaskingSettings, rankings: Mapping[str, Ranking], seed: int
) -> list[Point]:
    """Return the sets of each ranking, then the random sets, the same for every model, as `own`.

    Cells are ranking, order, index and draw.
    """
    sets = {name: ranked_sets(ranking, settings.groups) for name, ranking in rankings.items()}
    named = [(name, heads) for name, of_name in sets.items() for heads in of_name]
    control = random_sets(grid.size, settings.groups, settings.draws, seed)
    named += [("own", heads) for heads in control]
    return [Point((name, s.order, s.index, s.draw or ""), s.heads) for name, s in named]


def write_untuned(
    inputs: MaskedInputs,
    importance: Path,
    gates: Mapping[PrunedSettings, Path],
    settings: MaskingSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the cost of pruning without fine-tuning, by masks, see `write_points`.

    `importance`: importance.csv of the model. `gates`: heads.csv of each gates run that started
    from it. `seed`: of the random heads. Raises UserError, before anything is translated, if
    importance is another model's or gates are of other heads.
    """
    masked = inputs.load()
    ranks = read_importance(importance, inputs.model, masked.grid)
    points = list_untuned(masked.grid, ranks, gates, settings.draws, seed)
    tests = inputs.read_tests(settings.test_sets, settings.sentences)
    sets = [point.heads for point in points]
    scores = {name: masked.compare(test, sets) for name, test in tests.items()}
    write_points(masked, tests, points, scores, UNTUNED_COLUMNS, out, origin)


def list_untuned(
    grid: HeadGrid,
    importance: np.ndarray,
    gates: Mapping[PrunedSettings, Path],
    draws: int,
    seed: int,
) -> list[Point]:
    """Return the heads that each gates run closed, as many by importance, and as many at random.

    All are of the scope of the run. Cells are order (gates, ranked or drawn), run and draw, from 1.
    """
    points = []
    for run, path in gates.items():
        by_rank = run.model_copy(update={"method": "importance"})
        kept = read_gates(path, grid), as_many_heads(by_rank, path, grid, importance, seed)
        closed, ranked = (tuple(np.flatnonzero(gate == 0).tolist()) for gate in kept)
        scope = [place for place, head in enumerate(grid.heads()) if head.kind in run.kinds]
        chosen = [("gates", "", closed), ("ranked", "", ranked)]
        for draw in range(1, draws + 1):
            chosen.append(("drawn", draw, drawn_heads(scope, len(closed), seed, draw)))
        points += [Point((order, label(run), draw), heads) for order, draw, heads in chosen]
    return points
