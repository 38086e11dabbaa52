"""Frames of figures: the rows to draw, with columns for expressions and for categories."""

from typing import Any

import pandas as pd

from headcount.analysis.frames import grouped
from headcount.analysis.outputs import Draw


def prepared(spec: Draw, frame: pd.DataFrame) -> tuple[Draw, pd.DataFrame]:
    """Return the rows to draw, and layers with new columns in place of expressions."""
    frame = frame.query(spec.where) if spec.where else frame
    layers = [dict(layer) for layer in spec.layers]
    for number, layer in enumerate(layers):
        for side in ("x", "y", "low", "high"):
            text = layer.get(side)
            if isinstance(text, str) and text not in [*frame, "_value"]:
                layer[side] = f"{side}_{number}"
                frame = frame.assign(**{layer[side]: frame.eval(text)})
    spec, frame = _side_by_side(spec.model_copy(update={"layers": layers}), frame)
    return spec, frame.reset_index(drop=True)


def _side_by_side(spec: Draw, frame: pd.DataFrame) -> tuple[Draw, pd.DataFrame]:
    """Return the frame with one column `_value` for the columns that stand side by side."""
    if isinstance(spec.across, str):
        return spec, frame
    others = [name for name in frame if name not in spec.across]
    long = frame.melt(others, spec.across, "_name", "_value").dropna(subset="_value")
    return spec.model_copy(update={"across": "_name"}), long


def with_places(spec: Draw, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with numbers `_x` and `_y` for cells of heat maps and for categories.

    With `own_cells: true`, cells are counted in every panel, which need not have the same.
    """
    placed = frame.copy()
    for layer in spec.layers:
        for side in ("x", "y"):
            columns = layer.get(side)
            if layer["mark"] == "heat" or is_category(frame, columns):
                names = [columns] if isinstance(columns, str) else columns
                keys = pd.Series(list(zip(*(frame[name] for name in names), strict=True)))
                panels = spec.panels if layer.get("own_cells") else [0] * len(frame)
                numbers = keys.groupby(grouped(frame, panels).ngroup())
                placed[f"_{side}"] = numbers.transform(lambda panel: pd.factorize(panel)[0])
    return placed


def is_category(frame: pd.DataFrame, column: Any) -> bool:
    """Return whether an axis has names for values instead of numbers."""
    return isinstance(column, str) and not pd.api.types.is_numeric_dtype(frame[column])
