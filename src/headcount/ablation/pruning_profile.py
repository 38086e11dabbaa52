"""BLEU as more and more heads of one model are pruned: in several orders, and as it trained."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Differences,
    Masked,
    MaskedInputs,
    Point,
    point_rows,
)
from headcount.ablation.masking import first_test, read_single_effects
from headcount.ablation.pruning_orders import ALL, Curve, for_ranking, least_important, list_curves
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.head_values import COLUMNS as HEAD_COLUMNS
from headcount.base.head_values import head_rows
from headcount.base.ranking import step_sets
from headcount.base.settings.heads import AblationSettings, ImportanceSettings
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import measure_importance, read_importance
from headcount.heads.measures_files import beside, read_mean_outputs, read_measures
from headcount.model.removal import set_means
from headcount.model.transformer import copy_weights
from headcount.scoring.bootstrap import SEED, interval, p_value
from headcount.store.model_folder import check_shapes, load_weights

COLUMNS = ("test_set", "scope", "order", "index", "draw", *SCORE_COLUMNS)
TRAINING_COLUMNS = ("update", "test_set", "order", "index", *SCORE_COLUMNS)
AREA_COLUMNS = ("test_set", "scope", "order", "area", "low", "high", "reference_run", "delta")
AREA_COLUMNS += ("delta_low", "delta_high", "p")


def write_profile(
    inputs: MaskedInputs,
    importance: Path,
    ablation: Path,
    measures: Path | None,
    settings: AblationSettings,
    rerank: ImportanceSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the first test set under every set of pruned heads, see `write_curves`.

    `rerank`: how signed importance is measured. Raises UserError, before anything is translated,
    for a file of another model.
    """
    masked = inputs.load()
    values = read_importance(importance, inputs.model, masked.grid)
    effects = read_single_effects(ablation, masked.grid)
    measured = read_measures(measures, inputs.model, masked.grid) if measures else None
    means = read_mean_outputs(beside(measures, "means"), inputs.model) if measures else None
    signed = None
    if settings.signed:
        unsized = rerank.model_copy(update={"abs": "none"})
        signed = measure_importance(masked.model, read_drawn(inputs.pair, unsized), unsized)
    curves = list_curves(masked.grid, lambda _: values, effects, settings, seed, signed, measured)
    tests = inputs.read_tests(first_test(settings), settings.sentences)
    write_curves(masked, tests, *tests, list(curves), out, origin, means)


def write_curves(
    masked: Masked,
    tests: Mapping[str, Any],
    name: str,
    curves: Sequence[Curve],
    out: Path,
    origin: dict[str, Any],
    means: np.ndarray | None = None,
) -> None:
    """Write the score of each step of each curve as CSV, and `<name>_areas.csv`, see `area_rows`.

    `means`: mean outputs [heads, e], which pruned heads give in curves that are `filled`.
    """
    scores = {}
    for filled in (False, True) if means is not None else (False,):
        sets = [heads for curve in curves if curve.filled == filled for heads in curve.sets]
        if filled:
            set_means(masked.model, torch.from_numpy(means))
        scores[filled] = masked.compare(tests[name], sets)
    if means is not None:
        set_means(masked.model, None)

    def rows(metric: str) -> list[list[Any]]:
        of_curves = (
            point_rows(masked.grid, name, curve.points(), scores[curve.filled], metric)
            for curve in curves
        )
        return [row for rows in of_curves for row in rows]

    sets = [heads for curve in curves for heads in curve.sets]
    facts = masked.facts(tests, sets) | {"provenance": origin}
    masked.write(out, COLUMNS, rows, facts)
    areas = partial(area_rows, name, curves, scores)
    masked.write(out.with_name(f"{out.stem}_areas.csv"), AREA_COLUMNS, areas, facts)


def by_update(checkpoints: Sequence[Path], updates: Sequence[int]) -> dict[int, Path]:
    """Return <update>.safetensors of each update. Raises UserError for one missing or not named."""
    names = {path.stem: path for path in checkpoints}
    wanted = [str(update) for update in updates]
    if sorted(names) != sorted(wanted):
        raise UserError(
            f"--checkpoints: expected one of each update in ablation.updates "
            f"({', '.join(wanted) or 'none'}), found {', '.join(names) or 'none'}; "
            "see train.keep_updates"
        )
    return {update: names[str(update)] for update in updates}


def write_training_profile(
    inputs: MaskedInputs,
    checkpoints: Mapping[int, Path],
    settings: AblationSettings,
    importance: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the first test set as CSV, a row for each checkpoint and step of pruning.

    Heads are pruned by importance to that very checkpoint, which `<name>_heads.csv` has. Deltas,
    their intervals and p are to that checkpoint with all heads. `checkpoints`: files of weights by
    update.
    """
    weights = {update: load_weights(path) for update, path in checkpoints.items()}
    masked = inputs.load()
    for update, path in checkpoints.items():
        check_shapes(masked.model, weights[update], path)
    text = read_drawn(inputs.pair, importance)
    tests = inputs.read_tests(first_test(settings), settings.sentences)
    ((name, test),) = tests.items()
    grid = masked.grid
    scored, heads, sets = [], [], []
    for update in checkpoints:
        copy_weights(masked.model, weights[update])
        values = measure_importance(masked.model, text, importance)
        order = least_important(range(grid.size), for_ranking(values, grid, settings))
        steps = step_sets(order, settings.steps)
        points = [Point(("importance", index), silent) for index, silent in enumerate(steps)]
        scored.append((update, points, masked.compare(test, steps)))
        by_head = head_rows(grid.heads(), {"importance": values})
        heads += [[update, *row] for row in by_head]
        sets += steps

    def rows(metric: str) -> list[list[Any]]:
        of_updates = ((u, point_rows(grid, name, *of, metric)) for u, *of in scored)
        return [[update, *row] for update, rows in of_updates for row in rows]

    facts = masked.facts(tests, sets) | {"provenance": origin}
    masked.write(out, TRAINING_COLUMNS, rows, facts)
    of_heads = out.with_name(f"{out.stem}_heads.csv")
    write_result(of_heads, ("update", *HEAD_COLUMNS), heads, facts)


def area_rows(
    test: str, curves: Sequence[Curve], scores: Mapping[bool, Differences], metric: str
) -> list[list[Any]]:
    """Return the cells of `AREA_COLUMNS`, a row for each order of each scope.

    The area is the mean score over the steps from no head to all, by the trapezoid rule. Random
    orders have their mean, whose resamples draw orders as well as sentences. `delta`, by paired
    bootstrap, is the area minus that of importance, or of self-attention minus cross-attention.
    """
    areas: dict[tuple[str, str], list[np.ndarray]] = {}
    for curve in curves:
        if len(curve.sets) > 1:
            heights = np.stack(
                [scores[curve.filled][heads].by(metric).scores for heads in curve.sets]
            )
            area = ((heights[1:] + heights[:-1]) / 2).mean(axis=0)
            areas.setdefault((curve.scope, curve.order), []).append(area)
    means = {}
    for key, draws in areas.items():  # each resample draws as many orders, with repetition
        of_draws = np.stack(draws)
        chosen = np.random.default_rng(SEED).integers(len(draws), size=of_draws.shape)
        chosen[:, 0] = np.arange(len(draws))
        means[key] = np.take_along_axis(of_draws, chosen, axis=0).mean(axis=0)
    rows = []
    for (scope, order), values in means.items():
        reference = (ALL if scope == ALL else "dec_enc", "importance")
        cells = [test, scope, order, float(values[0]), *interval(values[1:])]
        judged: list[Any] = [""] * 5
        if (scope, order) != reference and reference in means:
            deltas = values - means[reference]
            delta, low_high = float(deltas[0]), interval(deltas[1:])
            judged = ["/".join(reference), delta, *low_high, p_value(delta, deltas[1:])]
        rows.append([*cells, *judged])
    return rows
