"""BLEU as more and more heads of one trained model are pruned, in several orders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.ablation import first_test
from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Differences,
    MaskedInputs,
    MaskedModel,
    score_cells,
)
from headcount.ablation.profile_areas import AREA_COLUMNS, area_rows
from headcount.ablation.pruning_orders import Curve, Rank, list_curves
from headcount.ablation.reranking import Measure, for_ranking
from headcount.ablation.single_effects import read_single_effects
from headcount.base.addresses import HeadGrid
from headcount.base.files import write_result
from headcount.base.ranking import Heads
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.importance_run import read_importance

COLUMNS = ("test_set", "scope", "order", "index", "draw", *SCORE_COLUMNS)


def write_profile(
    inputs: MaskedInputs,
    importance: Path,
    ablation: Path,
    settings: AblationSettings,
    rerank: ImportanceSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the first test set under every set of pruned heads as CSV.

    `importance` and `ablation`: importance.csv and ablation.csv of the model, which tell what each
    head is worth; `rerank`: how importance is measured anew; `seed` is that of the random orders.
    Deltas, their 95 % intervals and p-values are against no mask, by paired bootstrap. Beside `out`
    go a JSON of the same name, and `<name>_areas.csv`: mean BLEU over each curve, see `area_rows`.
    Raises UserError, before anything is translated, if importance or ablation are another model's,
    or a test set has no sentence.
    """
    masked = inputs.load()
    grid = masked.model.grid
    values = read_importance(importance, inputs.model, grid)
    plain = settings.model_copy(update={"normalise": "none"})
    ranking, raw = (rank_by(values, inputs, asked, rerank, masked) for asked in (settings, plain))
    effects = read_single_effects(ablation, grid)
    curves = list(list_curves(grid, ranking, raw, effects, settings, seed))
    tests = inputs.read_tests(first_test(settings), settings.sentences)
    sets = [heads for curve in curves for heads in curve.sets]
    ((test, found),) = masked.compare(tests, sets)
    rows = profile_rows(grid, test, curves, found)
    facts = {**masked.describe(tests, sets), "provenance": origin}
    write_result(out, COLUMNS, rows, facts)
    areas = out.with_name(f"{out.stem}_areas.csv")
    scores = {heads: difference.scores for heads, difference in found.items()}
    write_result(areas, AREA_COLUMNS, area_rows(test, curves, scores), facts)


def profile_rows(
    grid: HeadGrid, test: str, curves: Sequence[Curve], found: Differences
) -> list[list[Any]]:
    """The cells of `COLUMNS` for every step of every curve."""
    return [
        [test, *curve.cells(index), *score_cells(grid, heads, found)]
        for curve in curves
        for index, heads in enumerate(curve.sets)
    ]


def rank_by(
    values: np.ndarray,
    inputs: MaskedInputs,
    settings: AblationSettings,
    importance: ImportanceSettings,
    masked: MaskedModel,
) -> Rank:
    """Importance as `values` [heads] say; or measured anew, if so wanted, once heads are silent."""
    grid = masked.model.grid
    if not settings.reestimate:
        return lambda silent: for_ranking(values, grid, settings)
    measure = Measure.read(inputs.model, inputs.pair, importance)

    def rank(silent: Heads) -> np.ndarray:
        found = measure.of(masked.model, silent) if silent else values
        return for_ranking(found, grid, settings)

    return rank
