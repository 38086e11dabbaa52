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

    `rankings`: importance.csv by name, `own` and, where it is another's, `baseline`; `seed` is
    that of the random masks. Raises UserError, before anything is translated, if there are more
    groups than heads, `own` is another model's, a test set has no sentence or its sides differ in
    length.
    """
    masked = inputs.load()
    ranked = read_rankings(rankings, inputs.model, masked.grid)
    points = list_points(masked.grid, settings, ranked, seed)
    tests = inputs.read_tests(settings.test_sets, settings.sentences)
    sets = [point.heads for point in points]
    found = {name: masked.compare(test, sets) for name, test in tests.items()}
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
    """The sets of each ranking, then the random ones, which are every model's, as `own`.

    Cells are ranking, order, index and draw.
    """
    sets = [
        (name, each)
        for name, ranking in rankings.items()
        for each in ranked_sets(ranking, settings.groups)
    ]
    control = random_sets(grid.size, settings.groups, settings.draws, seed)
    sets += [("own", each) for each in control]
    return [
        Point((name, each.order, each.index, each.draw or ""), each.heads) for name, each in sets
    ]


def write_untuned(
    inputs: MaskedInputs,
    importance: Path,
    gates: Mapping[PrunedSettings, Path],
    settings: MaskingSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write what pruning costs without fine-tuning, by masks, see `write_points`.

    `importance`: importance.csv of the model; `gates`: heads.csv of each gates run that started
    from it; `seed` is that of the random heads. Raises UserError, before anything is translated,
    if importance is another model's, gates are of other heads, a test set has no sentence or its
    sides differ in length.
    """
    masked = inputs.load()
    ranks = read_importance(importance, inputs.model, masked.grid)
    points = list_untuned(masked.grid, ranks, gates, settings.draws, seed)
    tests = inputs.read_tests(settings.test_sets, settings.sentences)
    sets = [point.heads for point in points]
    found = {name: masked.compare(test, sets) for name, test in tests.items()}
    write_points(masked, tests, points, found, UNTUNED_COLUMNS, out, origin)


def list_untuned(
    grid: HeadGrid,
    importance: np.ndarray,
    gates: Mapping[PrunedSettings, Path],
    draws: int,
    seed: int,
) -> list[Point]:
    """The heads that each gates run closed; of its scope as many of least importance, and random.

    Cells are order (gates, ranked or drawn), run and draw, from 1.
    """
    points = []
    for run, path in gates.items():
        by_rank = run.model_copy(update={"method": "importance"})
        kept = read_gates(path, grid), as_many_heads(by_rank, path, grid, importance, seed)
        closed, ranked = (tuple(np.flatnonzero(each == 0).tolist()) for each in kept)
        scope = [place for place, head in enumerate(grid.heads()) if head.kind in run.kinds]
        chosen = [("gates", "", closed), ("ranked", "", ranked)]
        for draw in range(1, draws + 1):
            chosen.append(("drawn", draw, drawn_heads(scope, len(closed), seed, draw)))
        points += [Point((order, label(run), draw), heads) for order, draw, heads in chosen]
    return points
