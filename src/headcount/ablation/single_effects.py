"""What each head alone is worth on dev, from the ablation.csv of a model."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headcount.ablation.ablation import COLUMNS, DEV
from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError


def single_effects(rows: Sequence[Sequence[Any]], grid: HeadGrid) -> np.ndarray:
    """BLEU change on dev without each head, [heads], from rows of an ablation still in memory.

    A row has the cells of `COLUMNS`; a negative change is worse.
    """
    cells = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    found = [row["delta"] for row in cells if (row["test_set"], row["order"]) == (DEV, "single")]
    return np.array(found, dtype=float).reshape(grid.size)


def read_single_effects(path: Path, grid: HeadGrid) -> np.ndarray:
    """BLEU change on dev without each head, [heads] in flat order; negative is worse.

    Raises UserError unless the file has one for each head of this model and for no other.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise UserError(
                f"{path}:1: expected the columns {', '.join(COLUMNS)}, found "
                f"{', '.join(rows.fieldnames or ['nothing'])}; make it again"
            )
        single = [row for row in rows if (row["test_set"], row["order"]) == (DEV, "single")]
    heads = [Head(row["kind"], int(row["layer"]), int(row["head"])) for row in single]
    if heads != grid.heads():
        raise UserError(
            f"{path}: expected the effect on {DEV} of each of {grid.size} heads, found other "
            f"heads, {len(heads)} of them; this file belongs to another model"
        )
    return np.array([float(row["delta"]) for row in single])
