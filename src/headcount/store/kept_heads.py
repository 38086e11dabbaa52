"""Choice of the heads that stay in a pruned model: by gates, by importance, at random, by a list.

Every function that chooses returns a head multiplier, [heads] in flat order, 0 = removed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headcount.base.addresses import KINDS, SCOPES, UNITS, HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_address, read_head_list, read_head_values
from headcount.base.random_streams import Stream
from headcount.base.ranking import rank_heads
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings


def read_gates(path: Path, grid: HeadGrid) -> np.ndarray:
    """Return the gates in a heads.csv. Raises UserError for a gate missing or outside 0 to 1."""
    gates = read_head_values(path, "gate", grid)
    for head, gate in zip(grid.heads(), gates, strict=True):
        if not 0 <= gate <= 1:
            raise UserError(f"{path}: the gate of {head.label()} is {gate:g}, expected 0 to 1")
    return gates


def gates_heads(path: Path, grid: HeadGrid) -> np.ndarray:
    """Return 1 for every head whose gate in a heads.csv is not 0."""
    return (read_gates(path, grid) != 0).astype(float)


def as_many_heads(
    run: PrunedSettings, path: Path, grid: HeadGrid, importance: np.ndarray | None, seed: int
) -> np.ndarray:
    """Keep as many heads of the run's scope as the gates in `path` do, by importance or at random.

    Of a random order a smaller number keeps a part of the heads of a larger one.
    """
    inside = np.array([head.kind in run.kinds for head in grid.heads()], dtype=bool)
    count = np.count_nonzero(read_gates(path, grid)[inside])
    if run.method == "random":
        order = Stream.KEPT_HEADS.generator(seed).permutation(grid.size).tolist()
    elif importance is None:
        raise UserError(
            "a run by importance needs --importance, the importance.csv of the model it starts from"
        )
    else:
        order = rank_heads(importance)
    return _keep_first(order, inside, count)


def pick_heads(
    grid: HeadGrid,
    gates: Path | None,
    listed: Path | None,
    importance: np.ndarray | None,
    count: int | None,
    scope: str = "all",
) -> np.ndarray:
    """Keep units by the gates of a heads.csv, by a list of units to remove, or by importance.

    By importance the `count` most important units of a scope stay, and all outside of it.
    """
    if (importance is None) != (count is None):
        raise UserError("--keep and --importance go together: how many of the most important stay")
    if gates:
        return read_gates(gates, grid)
    if listed:
        return grid.mask(read_head_list(listed, grid))
    inside = np.array([unit.kind in SCOPES[scope] for unit in grid.heads()], dtype=bool)
    if not inside.any():
        raise UserError(f"--scope {scope}: expected importance of all units (--units), found heads")
    if not 0 <= count <= inside.sum():
        raise UserError(f"--keep: expected 0 to {inside.sum()} units of {scope}, found {count}")
    return _keep_first(rank_heads(importance), inside, count)


def read_mask(named: Sequence[str | Path] | str | Path, grid: HeadGrid) -> np.ndarray:
    """Return the multiplier [heads] of addresses, files that list heads, and heads.csv."""
    mask = np.ones(grid.size)
    for name in [named] if isinstance(named, str | Path) else named:
        path = Path(name)
        if path.suffix == ".csv":
            mask *= read_gates(path, grid)
        elif path.is_file():
            mask *= grid.mask(read_head_list(path, grid))
        else:
            mask[grid.index(read_address(str(name), grid, f"mask: {name} is no file"))] = 0
    return mask


def grid_named(named: Sequence[str | Path] | str | Path, settings: ModelSettings) -> HeadGrid:
    """Return the grid of the model's heads, or of all its units if a mask names others."""
    texts = []
    for name in [named] if isinstance(named, str | Path) else named:
        path = Path(name)
        texts.append(path.read_text(errors="replace") if path.is_file() else str(name))
    others = [kind for kind in UNITS if kind not in KINDS]
    return settings.unit_grid if any(k in t for t in texts for k in others) else settings.grid


def tell_heads_left(grid: HeadGrid, kept: np.ndarray) -> None:
    """Print to standard error the units left by kind, and warn of layers without any."""
    kinds = np.array([head.kind for head in grid.heads()])
    left = kinds[kept != 0].tolist()
    parts = ", ".join(f"{k} {left.count(k)} of {sum(counts)}" for k, counts in grid.counts.items())
    unit = "head" if set(grid.counts) == set(KINDS) else "unit"
    lines = [f"{unit}s left: {len(left)} of {grid.size} ({parts})"]
    if closed := grid.closed_layers(kept):
        lines.append(f"warning: no {unit} is left in {', '.join(closed)}")
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def _keep_first(order: list[int], inside: np.ndarray, count: int) -> np.ndarray:
    """Return 1 for the first `count` heads of an order inside a scope, and for all outside."""
    kept = (~inside).astype(float)
    kept[[head for head in order if inside[head]][:count]] = 1
    return kept
