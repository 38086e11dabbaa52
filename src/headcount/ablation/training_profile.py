"""One model at points of its training: importance, and BLEU as more and more heads are pruned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.ablation import with_first
from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    MaskedInputs,
    describe_work,
    score_cells,
    write_scores,
)
from headcount.ablation.pruning_orders import importance_sets
from headcount.ablation.reranking import Measure, for_ranking
from headcount.base.errors import UserError
from headcount.base.head_values import COLUMNS as HEAD_COLUMNS
from headcount.base.ranking import Heads
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.model.transformer import Transformer
from headcount.store.checkpoint import fill, load_weights

COLUMNS = ("update", "test_set", "order", "index", *SCORE_COLUMNS)


@dataclass(frozen=True)
class CheckpointInputs(MaskedInputs):
    """What the experiment reads; `model` tells the shape and the vocabularies."""

    checkpoints: Sequence[Path]  # <update>.safetensors of one training

    def files(self, settings: AblationSettings) -> list[Path]:
        """The files that shape the outcome."""
        return [*super().files(with_first(settings)), *self.checkpoints]

    def by_update(self, updates: Sequence[int]) -> dict[int, Path]:
        """The checkpoint of each update. Raises UserError for one that is missing, or not named."""
        found = {path.stem: path for path in self.checkpoints}
        wanted = [str(update) for update in updates]
        if sorted(found) != sorted(wanted):
            raise UserError(
                f"--checkpoints: expected one of each update in ablation.updates "
                f"({', '.join(wanted) or 'none'}), found {', '.join(found) or 'none'}; "
                "train.keep_updates says which are kept"
            )
        for path in self.checkpoints:
            if not path.is_file():
                raise UserError(f"{path}: expected a checkpoint, found no such file; train again")
        return {update: found[str(update)] for update in updates}


def write_training_profile(
    inputs: CheckpointInputs,
    settings: AblationSettings,
    importance: ImportanceSettings,
    decode: DecodeSettings,
    language: str,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the first test set as CSV, a row for each checkpoint and step of pruning.

    Heads go in the order of their importance to that very checkpoint, measured here; deltas, their
    intervals and p are to that checkpoint with all heads. Beside `out` go a JSON of the same name,
    and `<name>_heads.csv`: the importance of every head at every checkpoint. `language` is the
    target's, for sacreBLEU. Raises UserError, before anything is translated, if a checkpoint is
    missing or of another model.
    """
    paths = inputs.by_update(settings.updates)
    weights = {update: load_weights(path) for update, path in paths.items()}
    masked = inputs.load(decode)
    for update, path in paths.items():
        fill(masked.model, weights[update], path)
    measure = Measure.read(inputs.model, inputs.pair, importance)
    tests = inputs.read_tests(with_first(settings))
    grid = masked.model.grid
    rows, heads, sets = [], [], []
    for update, path in paths.items():
        fill(masked.model, weights[update], path)
        steps, values = _steps(masked.model, measure, settings)
        ((test, found),) = masked.compare(tests, steps, language)
        rows += [
            [update, test, "importance", index, *score_cells(grid, silent, found)]
            for index, silent in enumerate(steps)
        ]
        heads += [
            [update, *head, "importance", repr(float(value))]
            for head, value in zip(grid.heads(), values, strict=True)
        ]
        sets += steps
    facts = {**describe_work(grid, tests, sets), "provenance": origin}
    write_scores(out, COLUMNS, rows, facts, decode)
    by_head = out.with_name(f"{out.stem}_heads.csv")
    write_scores(by_head, ("update", *HEAD_COLUMNS), heads, facts, decode)


def _steps(
    model: Transformer, measure: Measure, settings: AblationSettings
) -> tuple[list[Heads], np.ndarray]:
    """Heads to silence at each step, the least important first, and what each was worth."""
    values = measure.of(model)

    def rank(silent: Heads) -> np.ndarray:
        found = measure.of(model, silent) if settings.reestimate and silent else values
        return for_ranking(found, model.grid, settings)

    return importance_sets(range(model.grid.size), rank, settings), values
