"""Which heads a pruned model keeps: as gates say, by importance, by draw, or as a file lists them.

What picks heads returns a head multiplier, [heads] of the model that is read in flat order, 0 =
removed.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_address, read_head_list, read_head_values
from headcount.base.random_streams import Stream
from headcount.base.ranking import rank_heads
from headcount.base.settings.runs import PrunedSettings


def read_gates(path: Path, grid: HeadGrid) -> np.ndarray:
    """The gates in a heads.csv. Raises UserError where one is missing, or below 0 or above 1."""
    gates = read_head_values(path, "gate", grid)
    for head, gate in zip(grid.heads(), gates, strict=True):
        if not 0 <= gate <= 1:
            raise UserError(f"{path}: the gate of {head.label()} is {gate:g}, expected 0 to 1")
    return gates


def gates_heads(path: Path, grid: HeadGrid) -> np.ndarray:
    """1 for every head whose gate in a heads.csv is not 0."""
    return (read_gates(path, grid) != 0).astype(float)


def as_many_heads(
    run: PrunedSettings, path: Path, grid: HeadGrid, importance: np.ndarray | None, seed: int
) -> np.ndarray:
    """As many heads of the run's scope as the gates in `path` keep, by importance or at random.

    By importance: the most important ones, equal ones in flat order. At random: the first of an
    order that the seed alone decides, so that of two numbers the smaller keeps a part of the
    larger's heads. Raises UserError if a ranking is wanted and `importance` is None.
    """
    inside = np.array([head.kind in run.kinds for head in grid.heads()], dtype=bool)
    count = int(gates_heads(path, grid)[inside].sum())
    if run.method == "random":
        order = Stream.KEPT_HEADS.generator(seed).permutation(grid.size).tolist()
        return _keep_first(order, inside, count)
    if importance is None:
        raise UserError(
            "a run by importance needs --importance, the importance.csv of the model it starts from"
        )
    return _keep_first(rank_heads(importance), inside, count)


def pick_heads(
    grid: HeadGrid,
    gates: Path | None,
    listed: Path | None,
    importance: np.ndarray | None,
    count: int | None,
) -> np.ndarray:
    """What is left of a model by hand, in one of three ways.

    The gates of a heads.csv as they are; or the heads that a list of addresses does not name; or
    the `count` most important heads of the whole model, equal ones in flat order. Raises
    UserError where a count goes with anything but importance, or is not there.
    """
    if (importance is None) != (count is None):
        raise UserError("--keep and --importance go together: how many of the most important stay")
    if gates:
        return read_gates(gates, grid)
    if listed:
        return grid.mask(read_head_list(listed, grid))
    if not 0 <= count <= grid.size:
        raise UserError(
            f"--keep: expected 0 to {grid.size} heads, as many as the model has, found {count}"
        )
    every = np.ones(grid.size, dtype=bool)
    return _keep_first(rank_heads(importance), every, count)


def read_mask(named: Sequence[str | Path] | str | Path, grid: HeadGrid) -> np.ndarray:
    """What addresses and files leave of a model, all of them together; without any, all heads.

    An address such as `enc_self.0.3` silences that head; a heads.csv has gates, which are taken as
    they are; any other file lists silent heads. Raises UserError for what is none of these, and
    for a head that the model does not have.
    """
    mask = np.ones(grid.size)
    for each in [named] if isinstance(named, str | Path) else named:
        path = Path(each)
        if path.suffix == ".csv":
            mask *= read_gates(path, grid)
        elif path.is_file():
            mask *= grid.mask(read_head_list(path, grid))
        else:
            mask[grid.index(read_address(str(each), grid, f"mask: {each}, no file"))] = 0
    return mask


def tell_heads_left(grid: HeadGrid, kept: np.ndarray) -> None:
    """Say on standard error how many heads are left, and which layers have lost all of theirs.

    In these words: '7 of 24 (enc_self 0 of 8, dec_self 3 of 8, …)'.
    """
    heads = grid.heads()
    every = Counter(head.kind for head in heads)
    left = Counter(head.kind for head, gate in zip(heads, kept, strict=True) if gate)
    parts = ", ".join(f"{kind} {left[kind]} of {every[kind]}" for kind in KINDS)
    told = [f"heads left: {left.total()} of {grid.size} ({parts})"]
    if closed := grid.closed_layers(kept):
        told.append(
            f"warning: no head is left in {', '.join(closed)}; only the residual path is left there"
        )
    print(*told, sep="\n", file=sys.stderr, flush=True)


def _keep_first(order: list[int], inside: np.ndarray, count: int) -> np.ndarray:
    """1 for the first `count` heads of an order that lie inside a scope, and for all outside."""
    kept = (~inside).astype(float)
    kept[[head for head in order if inside[head]][:count]] = 1
    return kept
