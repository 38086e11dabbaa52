"""BLEU as more and more heads of one model are pruned: in several orders, and as it trained."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headcount.ablation.ablation import first_test, read_single_effects
from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Differences,
    MaskedInputs,
    MaskedModel,
    Point,
    TestSet,
    point_rows,
)
from headcount.ablation.pruning_orders import (
    ALL,
    Curve,
    Rank,
    compared,
    importance_sets,
    list_curves,
    measured_anew,
)
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.head_values import COLUMNS as HEAD_COLUMNS
from headcount.base.ranking import Heads
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.importance import read_importance
from headcount.heads.measures_files import beside, read_mean_outputs, read_measures
from headcount.model.removal import set_means
from headcount.model.transformer import copy_weights
from headcount.scoring.bootstrap import SEED, interval, p_value
from headcount.store.model_folder import check_shapes, load_weights

COLUMNS = ("test_set", "scope", "order", "index", "draw", *SCORE_COLUMNS)
TRAINING_COLUMNS = ("update", "test_set", "order", "index", *SCORE_COLUMNS)
AREA_COLUMNS = ("test_set", "scope", "order", "area", "low", "high", "against", "delta")
AREA_COLUMNS += ("delta_low", "delta_high", "p")
_OF_ALL, _OF_KINDS = (ALL, "importance"), ("dec_enc", "importance")


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
    """Write BLEU of the first test set under every set of pruned heads as CSV.

    `importance` and `ablation`: importance.csv and ablation.csv of the model, which tell what each
    head is worth, and perhaps `measures`, its measures.csv; `rerank`: how importance is measured
    anew, also where it is signed; `seed` is that of the random orders. Deltas, their 95 %
    intervals and p-values are against no mask, by paired bootstrap. Beside `out` go a JSON of the
    same name, and `<name>_areas.csv`: mean BLEU over each curve, see `area_rows`. Raises UserError,
    before anything is translated, if one of the files is another model's, or a test set has no
    sentence.
    """
    masked = inputs.load()
    ranking = read_ranking(importance, inputs, masked, settings, rerank)
    effects = read_single_effects(ablation, masked.grid)
    signed = read_signed(inputs, masked, rerank) if settings.signed else None
    measured = read_measures(measures, inputs.model, masked.grid) if measures else None
    means = read_mean_outputs(beside(measures, "means"), inputs.model) if measures else None
    curves = list(list_curves(masked.grid, ranking, effects, settings, seed, signed, measured))
    tests = inputs.read_tests(first_test(settings), settings.sentences)
    ((name, test),) = tests.items()
    plain, filled = _compared(masked, test, curves, means)
    rows = [
        row
        for curve in curves
        for row in point_rows(masked.grid, name, curve.points(), filled if curve.filled else plain)
    ]
    sets = [heads for curve in curves for heads in curve.sets]
    facts = {**masked.describe(tests, sets), "provenance": origin}
    write_result(out, COLUMNS, rows, facts)
    areas = out.with_name(f"{out.stem}_areas.csv")
    scores = [{heads: each.scores for heads, each in way.items()} for way in (plain, filled)]
    write_result(areas, AREA_COLUMNS, area_rows(name, curves, *scores), facts)


def _compared(
    masked: MaskedModel, test: TestSet, curves: Sequence[Curve], means: np.ndarray | None
) -> tuple[Differences, Differences]:
    """What the sets of curves cost, pruned heads giving zeros; and those of `filled` curves.

    In these pruned heads give their `means`, [heads, e].
    """
    plain, filled = (
        [heads for curve in curves if curve.filled == way for heads in curve.sets]
        for way in (False, True)
    )
    found = masked.compare(test, plain)
    if not filled:
        return found, {}
    set_means(masked.model, torch.from_numpy(means))
    with_means = masked.compare(test, filled)
    set_means(masked.model, None)
    return found, with_means


def read_ranking(
    path: Path,
    inputs: MaskedInputs,
    masked: MaskedModel,
    settings: AblationSettings,
    rerank: ImportanceSettings,
) -> Rank:
    """Importance as a file has it; once heads are silent measured anew, if that is wanted."""
    values = read_importance(path, inputs.model, masked.grid)
    if not settings.reestimate:
        return lambda silent: values
    measure = measured_anew(inputs, rerank)
    return lambda silent: measure(masked.model, silent) if silent else values


def read_signed(inputs: MaskedInputs, masked: MaskedModel, rerank: ImportanceSettings) -> Rank:
    """Importance without absolute values, measured as `rerank` says in all else."""
    return partial(measured_anew(inputs, rerank.model_copy(update={"abs": "none"})), masked.model)


def by_update(checkpoints: Sequence[Path], updates: Sequence[int]) -> dict[int, Path]:
    """The checkpoint, <update>.safetensors of one training, of each update.

    Raises UserError for one that is missing, or not named.
    """
    found = {path.stem: path for path in checkpoints}
    wanted = [str(update) for update in updates]
    if sorted(found) != sorted(wanted):
        raise UserError(
            f"--checkpoints: expected one of each update in ablation.updates "
            f"({', '.join(wanted) or 'none'}), found {', '.join(found) or 'none'}; "
            "train.keep_updates says which are kept"
        )
    for path in checkpoints:
        if not path.is_file():
            raise UserError(f"{path}: expected a checkpoint, found no such file; train again")
    return {update: found[str(update)] for update in updates}


def write_training_profile(
    inputs: MaskedInputs,
    checkpoints: Mapping[int, Path],
    settings: AblationSettings,
    importance: ImportanceSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the first test set as CSV, a row for each checkpoint and step of pruning.

    Heads go in the order of their importance to that very checkpoint, measured here; deltas, their
    intervals and p are to that checkpoint with all heads. Beside `out` go a JSON of the same name,
    and `<name>_heads.csv`: the importance of every head at every checkpoint. `checkpoints`: files
    of weights by update, see `by_update`; the model of `inputs` tells their shape and the
    vocabularies. Raises UserError, before anything is translated, if one is of another model.
    """
    weights = {update: load_weights(path) for update, path in checkpoints.items()}
    masked = inputs.load()
    for update, path in checkpoints.items():
        check_shapes(masked.model, weights[update], path)
    measure = measured_anew(inputs, importance)
    tests = inputs.read_tests(first_test(settings), settings.sentences)
    ((name, test),) = tests.items()
    grid = masked.grid
    rows, heads, sets = [], [], []
    for update in checkpoints:
        copy_weights(masked.model, weights[update])
        raw = cache(partial(measure, masked.model))
        steps = importance_sets(range(grid.size), compared(raw, grid, settings), settings)
        points = [Point(("importance", index), silent) for index, silent in enumerate(steps)]
        found = point_rows(grid, name, points, masked.compare(test, steps))
        rows += [[update, *row] for row in found]
        heads += [
            [update, *head, "importance", repr(float(value))]
            for head, value in zip(grid.heads(), raw(()), strict=True)
        ]
        sets += steps
    facts = {**masked.describe(tests, sets), "provenance": origin}
    write_result(out, TRAINING_COLUMNS, rows, facts)
    by_head = out.with_name(f"{out.stem}_heads.csv")
    write_result(by_head, ("update", *HEAD_COLUMNS), heads, facts)


def area_rows(
    test: str,
    curves: Sequence[Curve],
    scores: Mapping[Heads, np.ndarray],
    filled: Mapping[Heads, np.ndarray] | None = None,
) -> list[list[Any]]:
    """The cells of `AREA_COLUMNS`, a row for each order of each scope.

    The area is the mean BLEU over the steps from no head to all, in points, by the trapezoid rule;
    all steps weigh alike, though heads are whole numbers. Of random orders the mean, whose
    resamples draw orders as well as sentences. Orders over all heads are held against importance,
    the two self-attentions against encoder-decoder attention: `delta` is the area minus that of
    `against` (empty for these two themselves), its interval and p by paired bootstrap. `scores`:
    BLEU of the test set, then of its resamples, under each set of heads; `filled`: the same for
    curves in which pruned heads give their means.
    """
    areas: dict[tuple[str, str], list[np.ndarray]] = {}
    for curve in curves:
        if len(curve.sets) > 1:
            own = filled if curve.filled else scores
            heights = np.stack([own[heads] for heads in curve.sets])
            area = ((heights[1:] + heights[:-1]) / 2).mean(axis=0)
            areas.setdefault((curve.scope, curve.order), []).append(area)
    means = {key: _over_draws(np.stack(found)) for key, found in areas.items()}
    rows = []
    for (scope, order), values in means.items():
        reference = _OF_ALL if scope == ALL else _OF_KINDS
        cells = [test, scope, order, float(values[0]), *interval(values[1:])]
        if (scope, order) == reference or reference not in means:
            rows.append([*cells, *[""] * 5])
            continue
        deltas = values - means[reference]
        judged = (float(deltas[0]), *interval(deltas[1:]), p_value(float(deltas[0]), deltas[1:]))
        rows.append([*cells, "/".join(reference), *judged])
    return rows


def _over_draws(areas: np.ndarray) -> np.ndarray:
    """Mean of [draws, 1 + resamples]; each resample takes as many draws, with repetition."""
    chosen = np.random.default_rng(SEED).integers(len(areas), size=areas.shape)
    chosen[:, 0] = np.arange(len(areas))
    return np.take_along_axis(areas, chosen, axis=0).mean(axis=0)
