"""BLEU as more and more heads of one trained model are pruned, in several orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.ablation import with_first
from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    Differences,
    MaskedInputs,
    MaskedModel,
    describe_work,
    score_cells,
    write_scores,
)
from headcount.ablation.profile_areas import AREA_COLUMNS, area_rows
from headcount.ablation.pruning_orders import Curve, Rank, list_curves
from headcount.ablation.reranking import Measure, for_ranking
from headcount.ablation.single_effects import read_single_effects
from headcount.base.addresses import HeadGrid
from headcount.base.ranking import Heads
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.importance_run import read_importance

COLUMNS = ("test_set", "scope", "order", "index", "draw", *SCORE_COLUMNS)


@dataclass(frozen=True)
class ProfileInputs(MaskedInputs):
    """What the experiment reads."""

    importance: Path  # importance.csv of the model
    ablation: Path  # ablation.csv of the model: what each head alone is worth

    def files(self, settings: AblationSettings) -> list[Path]:
        """The files that shape the outcome."""
        return [*super().files(with_first(settings)), self.importance, self.ablation]


def write_profile(
    inputs: ProfileInputs,
    settings: AblationSettings,
    importance: ImportanceSettings,
    decode: DecodeSettings,
    language: str,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the first test set under every set of pruned heads as CSV.

    Deltas, their 95 % intervals and p-values are against no mask, by paired bootstrap. `language`
    is the target's, for sacreBLEU; `seed` that of the random orders. Beside `out` go a JSON of the
    same name, and `<name>_areas.csv`: mean BLEU over each curve, see `area_rows`. Raises
    UserError, before anything is translated, if importance or ablation are another model's, or a
    test set has no sentence.
    """
    masked = inputs.load(decode)
    grid = masked.model.grid
    plain = settings.model_copy(update={"normalise": "none"})
    ranking, raw = (rank_by(inputs, asked, importance, masked) for asked in (settings, plain))
    effects = read_single_effects(inputs.ablation, grid)
    curves = list(list_curves(grid, ranking, raw, effects, settings, seed))
    tests = inputs.read_tests(with_first(settings))
    sets = [heads for curve in curves for heads in curve.sets]
    ((test, found),) = masked.compare(tests, sets, language)
    rows = profile_rows(grid, test, curves, found)
    facts = {**describe_work(grid, tests, sets), "provenance": origin}
    write_scores(out, COLUMNS, rows, facts, decode)
    areas = out.with_name(f"{out.stem}_areas.csv")
    scores = {heads: difference.scores for heads, difference in found.items()}
    write_scores(areas, AREA_COLUMNS, area_rows(test, curves, scores), facts, decode)


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
    inputs: ProfileInputs,
    settings: AblationSettings,
    importance: ImportanceSettings,
    masked: MaskedModel,
) -> Rank:
    """Importance by the model's own file; or measured anew, if so wanted, once heads are silent."""
    grid = masked.model.grid
    values = read_importance(inputs.importance, inputs.model, grid)
    if not settings.reestimate:
        return lambda silent: for_ranking(values, grid, settings)
    measure = Measure.read(inputs.model, inputs.pair, importance)

    def rank(silent: Heads) -> np.ndarray:
        found = measure.of(masked.model, silent) if silent else values
        return for_ranking(found, grid, settings)

    return rank
