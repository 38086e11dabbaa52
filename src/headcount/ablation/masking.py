"""One model with heads masked: one by one, all but one of a layer, by importance, at random."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Inputs,
    Masked,
    MaskedInputs,
    Point,
    point_rows,
    score_columns,
    write_points,
)
from headcount.base.addresses import SCOPES, Head, HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_csv
from headcount.base.head_values import read_head_values
from headcount.base.ranking import Ranking, drawn_heads, random_sets, rank_heads, ranked_sets
from headcount.base.settings.heads import AblationSettings, MaskingSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.heads.importance import read_importance
from headcount.store.kept_heads import as_many_heads, read_gates
from headcount.store.model_folder import ModelFolder

ABLATION_COLUMNS = ("test_set", "order", "index", "kind", "layer", "head", *SCORE_COLUMNS)
DEV = "dev"
"""Chooses the head that a layer keeps. The test sets only score it."""


def write_ablation(
    masked: Masked, tests: Mapping[str, Any], out: Path, origin: dict[str, Any]
) -> None:
    """Write the score without each head, and with one head alone in its layer, as CSV.

    Order `none` masks no head, `single` that head, `all_but_one` every other head of its kind and
    layer: on dev, the first of `tests`, for each head, on a test set for the head with the highest
    score on dev, of equal ones the first. That is BLEU, whatever other metrics there are. Deltas,
    their 95 % intervals and p-values are against no mask, by paired bootstrap. A JSON beside `out`
    has `Masked.facts` and `origin`.
    """
    grid, layers = masked.grid, all_but_one(masked.grid)
    plain = [Point(("none", 0, "", "", ""), ()), *single_heads(grid)]
    points = [*plain, *chain(*layers)]
    facts = {"dev": DEV, "provenance": origin}
    scored = []
    for name, test in tests.items():
        sets = [point.heads for point in points]
        scores = masked.compare(test, sets, resamples_for(grid))
        scored.append((name, points, scores))
        if name == DEV:
            facts = masked.facts(tests, sets) | facts
            best = [max(layer, key=lambda point: scores[point.heads].score) for layer in layers]
            points = [*plain, *best]

    def rows(metric: str) -> list[list[Any]]:
        return [row for of_test in scored for row in point_rows(grid, *of_test, metric)]

    masked.write(out, ABLATION_COLUMNS, rows, facts)


def resamples_for(grid: HeadGrid) -> int:
    """Return how many resamples the tests of all heads of a model need."""
    return max(1000, 200 * grid.size)  # after Holm's correction p can still be 1 / 200


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
    heads, points = grid.heads(), []
    for layer in (range(grid.size)[span] for _, _, span in grid.layers()):
        others = [tuple(head for head in layer if head != kept) for kept in layer]
        named = zip(layer, others, strict=True)
        points.append([Point(("all_but_one", kept + 1, *heads[kept]), s) for kept, s in named])
    return [layer for layer in points if len(layer) > 1]


def read_single_effects(path: Path, grid: HeadGrid, metric: str = "bleu") -> np.ndarray:
    """Return the change on dev without each head, [heads] in flat order, negative is worse.

    Raises UserError unless the file has one change for each head of this model and for no other.
    """
    rows = (row for _, row in read_csv(path, score_columns(ABLATION_COLUMNS, metric)))
    single = [row for row in rows if (row["test_set"], row["order"]) == (DEV, "single")]
    heads = [Head(row["kind"], int(row["layer"]), int(row["head"])) for row in single]
    if heads != grid.heads():
        raise UserError(
            f"{path}: expected the effects on {DEV} of the {grid.size} heads of this model, found "
            f"{len(heads)}; this file belongs to another model"
        )
    return np.array([float(row["delta"]) for row in single])


COLUMNS = ("test_set", "ranking", "order", "index", "draw", *SCORE_COLUMNS)
UNTUNED_COLUMNS = ("test_set", "order", "matched_run", "draw", *SCORE_COLUMNS)


def write_masking(
    inputs: Inputs,
    rankings: Mapping[str, Path],
    settings: MaskingSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
    scope: str = "all",
) -> None:
    """Write BLEU under every mask of the experiment, see `write_points`.

    `rankings`: importance.csv by name, `own` and, for another model, `baseline`. `seed`: of the
    random masks. `scope`: units that are masked, of `SCOPES`. Raises UserError, before anything is
    translated, if there are more groups than units or `own` is another model's.
    """
    masked = inputs.load()
    if scope != "all":
        masked = masked.of_units()
    ranked = read_rankings(rankings, inputs.model, masked.grid)
    points = list_points(masked.grid, settings, ranked, seed, scope)
    tests = inputs.read_tests(settings.test_sets, settings.sentences)
    scores = {name: masked.compare(test, [p.heads for p in points]) for name, test in tests.items()}
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
    grid: HeadGrid,
    settings: MaskingSettings,
    rankings: Mapping[str, Ranking],
    seed: int,
    scope: str = "all",
) -> list[Point]:
    """Return the sets of each ranking, then the random sets, the same for every model, as `own`.

    All are units of a scope. Layers have a group each.
    """
    inside = [place for place, unit in enumerate(grid.heads()) if unit.kind in SCOPES[scope]]
    groups = len(inside) if scope == "layers" else settings.groups
    own = {name: [n for n in ranking if n in {*inside}] for name, ranking in rankings.items()}
    named = [(name, one) for name, ranking in own.items() for one in ranked_sets(ranking, groups)]
    for drawn in random_sets(len(inside), groups, settings.draws, seed):
        named.append(("own", replace(drawn, heads=tuple(inside[n] for n in drawn.heads))))
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
    scores = {name: masked.compare(test, [p.heads for p in points]) for name, test in tests.items()}
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
        points += [Point((order, run.label, draw), heads) for order, draw, heads in chosen]
    return points
