"""What pruning costs without fine-tuning: as many heads masked as each gates run closed.

Which heads: those that the gates run closed itself, those of least importance, and random ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.masked_bleu import SCORE_COLUMNS, MaskedInputs, write_points
from headcount.base.addresses import HeadGrid
from headcount.base.ranking import Heads, drawn_heads
from headcount.base.settings.ablation import MaskingSettings
from headcount.base.settings.runs import PrunedSettings, label
from headcount.store.kept_heads import as_many_heads, read_gates

COLUMNS = ("test_set", "order", "as_run", "draw", *SCORE_COLUMNS)


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
    inputs: MaskedInputs,
    importance: Path,
    gates: Mapping[PrunedSettings, Path],
    settings: MaskingSettings,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU of the model with heads masked, see `write_points`.

    `importance`: importance.csv of the model; `gates`: heads.csv of each gates run that started
    from it; `seed` is that of the random heads. Raises UserError, before anything is translated,
    if importance or gates are another model's, a test set has no sentence or its sides differ in
    length.
    """
    masked = inputs.load()
    cuts = list_cuts(masked.model.grid, importance, gates, settings.draws, seed)
    tests = inputs.read_tests(settings.test_sets, settings.sentences)
    found = dict(masked.compare(tests, [cut.heads for cut in cuts]))
    write_points(masked, tests, cuts, found, COLUMNS, out, origin)


def list_cuts(
    grid: HeadGrid,
    importance: Path,
    gates: Mapping[PrunedSettings, Path],
    draws: int,
    seed: int,
) -> list[Cut]:
    """For each gates run the heads that it closed, then as many of its scope in other ways."""
    cuts = []
    for run, path in gates.items():
        closed = _silent(read_gates(path, grid))
        by_rank = run.model_copy(update={"method": "importance"})
        ranked = _silent(as_many_heads(by_rank, path, grid, importance, seed))
        cuts += [Cut("gates", run, None, closed), Cut("ranked", run, None, ranked)]
        scope = [n for n, head in enumerate(grid.heads()) if head.kind in run.kinds]
        cuts += [
            Cut("drawn", run, draw, drawn_heads(scope, len(closed), seed, draw))
            for draw in range(1, draws + 1)
        ]
    return cuts


def _silent(multiplier: np.ndarray) -> Heads:
    return tuple(np.flatnonzero(multiplier == 0).tolist())
