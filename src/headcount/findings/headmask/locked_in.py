"""Which heads masked training locked in: masked in nearly every update for a while.

What a training recorded is arrays here, of [interval, head]; an interval ends at a validation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.settings.training_runs import RunSettings
from headcount.findings.masked_training import ABANDONED, ROUNDING, masking_updates
from headcount.findings.results import HEAD, KEYS, gather
from headcount.findings.scores import Key

SHORTEST = 50  # updates: a share of fewer says little
SLOPES = ["slope_mean", "slope_sd", "importance"]


def read_slopes(files: list[Path]) -> pd.DataFrame:
    """Derivatives by interval: pair, run, seed, step, kind, layer, head, then `SLOPES`.

    Runs without a first pass have no rows. `slope_mean`: mean over sentences of ∂L/∂ξ, nats; above
    0 where the loss would fall without the head. `importance`: mean of what the ranking took.
    """
    return gather(files, ["step", *HEAD, *SLOPES])


@dataclass(frozen=True)
class History:
    """What one training recorded of its heads."""

    key: Key
    run: RunSettings
    heads: list[Head]
    """In the model's order."""

    ends: np.ndarray
    """[interval]: the last update of each; none of a training that masks no head."""

    masked: np.ndarray
    """[interval, head]: share of updates that masked it, 0 to 1."""

    slope_mean: np.ndarray
    """[interval, head], as in `read_slopes`; NaN where none was measured, here and below."""

    slope_sd: np.ndarray
    importance: np.ndarray

    @cached_property
    def starts(self) -> np.ndarray:
        """[interval]: updates before each."""
        return np.concatenate([[0], self.ends[:-1]])

    @cached_property
    def lengths(self) -> np.ndarray:
        """[interval]: updates in each."""
        return self.ends - self.starts

    @cached_property
    def free(self) -> np.ndarray:
        """[interval]: whether the rule alone decided all its masks; it follows the held updates."""
        return self.starts >= self.run.rule_from

    @cached_property
    def masking(self) -> np.ndarray:
        """[interval]: updates that mask heads at all: every one, or those that training drew."""
        return masking_updates(self.run, self.key[2], self.ends, self.lengths)

    @cached_property
    def locked(self) -> np.ndarray:
        """[interval, head]: whether the head is locked in.

        It is masked in `ABANDONED` of the updates that mask, or more, in this interval and in free
        ones next to it that span `SHORTEST` updates.
        """
        masks = self.masked * self.lengths[:, None]
        often = masks >= (ABANDONED - ROUNDING) * self.masking[:, None]
        often &= (self.free & (self.masking > 0))[:, None]
        for head in often.T:
            for first, past in spells(head):
                head[first:past] = self.lengths[first:past].sum() >= SHORTEST
        return often

    @cached_property
    def ever(self) -> np.ndarray:
        """[head]: whether it is locked in for a while."""
        return self.locked.any(axis=0)

    @cached_property
    def candidates(self) -> np.ndarray:
        """[head]: whether the run may mask it."""
        return np.array([kind != self.run.spare for kind, *_ in self.heads])

    @cached_property
    def holdable(self) -> np.ndarray:
        """[head]: whether the run may hold it: any that it may mask, or those of one layer."""
        first = (self.run.held_in, 0)
        return self.candidates & np.array(
            [not self.run.held_in or (kind, layer) == first for kind, layer, _ in self.heads]
        )

    @cached_property
    def held(self) -> np.ndarray | None:
        """[head]: whether it is one of the N that are masked in all held updates; None if unknown.

        Intervals that lie wholly in the held updates tell. Raises UserError if they tell of another
        number of heads.
        """
        within = (self.starts >= self.run.after) & (self.ends <= self.run.rule_from)
        if not within.any():
            return None
        found = (self.masked[within] >= 1 - ROUNDING).all(axis=0)
        if found.sum() != self.run.heads:
            pair, run, seed = self.key
            raise UserError(
                f"masks.csv of {run} ({pair}, seed {seed}): expected {self.run.heads} heads that "
                f"are masked in all updates from {self.run.after + 1} to {self.run.rule_from}, "
                f"found {found.sum()}; train it again"
            )
        return found


def spells(often: np.ndarray) -> Iterator[tuple[int, int]]:
    """First place and the place past the last of each stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], often, [False]])))
    return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def histories(
    runs: Mapping[Key, RunSettings], heads: list[Head], masks: pd.DataFrame, slopes: pd.DataFrame
) -> list[History]:
    """What each of these trainings recorded of its heads; tables of `read_masks`, `read_slopes`.

    Those that mask none have no intervals. Raises UserError where slopes are of other intervals
    than masks.
    """
    shares, measured = (dict(list(table.groupby(KEYS, sort=False))) for table in (masks, slopes))
    return [
        _history(key, run, heads, shares.get(key, masks[:0]), measured.get(key, slopes[:0]))
        for key, run in runs.items()
    ]


def _history(
    key: Key, run: RunSettings, heads: list[Head], masks: pd.DataFrame, slopes: pd.DataFrame
) -> History:
    ends = np.sort(masks["step"].unique().astype(int))
    if other := set(slopes["step"]) - set(ends):
        raise UserError(
            f"slopes.csv of {key[1]} ({key[0]}, seed {key[2]}): expected the intervals of its "
            f"masks.csv, found one that ends at update {min(other)}; train it again"
        )

    def array(table: pd.DataFrame, column: str) -> np.ndarray:
        if table.empty:
            return np.full((len(ends), len(heads)), np.nan)
        wide = table.pivot(index="step", columns=HEAD, values=column)
        columns = pd.MultiIndex.from_tuples(heads, names=HEAD)
        return wide.reindex(index=ends, columns=columns).to_numpy(dtype=float)

    measured = {column: array(slopes, column) for column in SLOPES}
    return History(key, run, heads, ends, array(masks, "masked"), **measured)
