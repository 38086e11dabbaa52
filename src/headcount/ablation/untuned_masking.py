"""What pruning costs without fine-tuning: as many heads masked as each gates run closed.

Which heads: those that the gates run closed itself, those of least importance, and random ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.masked_bleu import (
    SCORE_COLUMNS,
    MaskedInputs,
    describe_work,
    score_cells,
    write_scores,
)
from headcount.base.addresses import HeadGrid
from headcount.base.ranking import Heads, drawn_heads
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.masking import MaskingSettings
from headcount.base.settings.runs import PrunedSettings, label
from headcount.store.kept_heads import as_many_heads, read_gates

COLUMNS = ("test_set", "order", "as_run", "draw", *SCORE_COLUMNS)


@dataclass(frozen=True)
class UntunedInputs(MaskedInputs):
    """What the experiment reads."""

    importance: Path  # importance.csv of the model
    gates: Mapping[PrunedSettings, Path]  # heads.csv of each gates run that started from it

    def files(self, settings: MaskingSettings) -> list[Path]:
        """The files that shape the outcome."""
        return [*super().files(settings), self.importance, *self.gates.values()]


@dataclass(frozen=True)
class Cut:
    """Heads to mask together, and whose number they have."""

    order: str  # gates, ranked or drawn
    as_run: PrunedSettings
    draw: int | None  # number of the random choice, from 1
    heads: Heads

    def cells(self) -> list[Any]:
        """Order, run and draw."""
        return [self.order, label(self.as_run), "" if self.draw is None else self.draw]


def write_untuned(
    inputs: UntunedInputs,
    settings: MaskingSettings,
    decode: DecodeSettings,
    language: str,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the model with heads masked as CSV, one mask of one test set a row.

    Deltas, their 95 % intervals and p-values are against no mask, by paired bootstrap. `language`
    is the target's, for sacreBLEU; `seed` is that of the random heads. Beside `out` goes a JSON of
    the same name: sentences, distinct masks, search, and `origin`. Raises UserError, before
    anything is translated, if importance or gates are another model's, a test set has no sentence
    or its sides differ in length.
    """
    masked = inputs.load(decode)
    grid = masked.model.grid
    cuts = list_cuts(grid, inputs, settings.draws, seed)
    tests = inputs.read_tests(settings)
    sets = [cut.heads for cut in cuts]
    rows = [
        [test, *cut.cells(), *score_cells(grid, cut.heads, differences)]
        for test, differences in masked.compare(tests, sets, language)
        for cut in cuts
    ]
    facts = {**describe_work(grid, tests, sets), "provenance": origin}
    write_scores(out, COLUMNS, rows, facts, decode)


def list_cuts(grid: HeadGrid, inputs: UntunedInputs, draws: int, seed: int) -> list[Cut]:
    """For each gates run the heads that it closed, then as many of its scope in other ways."""
    cuts = []
    for run, path in inputs.gates.items():
        closed = _silent(read_gates(path, grid))
        by_rank = run.model_copy(update={"method": "importance"})
        ranked = _silent(as_many_heads(by_rank, path, grid, inputs.importance, seed))
        cuts += [Cut("gates", run, None, closed), Cut("ranked", run, None, ranked)]
        scope = [n for n, head in enumerate(grid.heads()) if head.kind in run.kinds]
        cuts += [
            Cut("drawn", run, draw, drawn_heads(scope, len(closed), seed, draw))
            for draw in range(1, draws + 1)
        ]
    return cuts


def _silent(multiplier: np.ndarray) -> Heads:
    return tuple(np.flatnonzero(multiplier == 0).tolist())
