"""The renderer: rows, panels, styles, marks and axes of a figure, from its declaration."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, SymLogNorm, to_hex
from matplotlib.figure import Figure

from headcount.analysis.captions import fill
from headcount.analysis.figures import special, style
from headcount.analysis.figures.marks import MARKS, label_cells, set_axes, value_label
from headcount.analysis.frames import Data, grouped
from headcount.analysis.outputs import Draw, Output
from headcount.analysis.writer import readable

_ABREAST, _ACROSS = 3, 4  # most panels in a row
_BESIDE = 1.2  # inches of a colour bar with its label


class _Panel(NamedTuple):
    """One panel: its place in the grid, its title and its rows."""

    row: int
    column: int
    title: str
    rows: pd.DataFrame


def draw(output: Output, frame: pd.DataFrame, data: Data) -> Figure:
    """Draw a figure from the frame of an output."""
    style.use_style()
    spec = output.draw
    if spec.frame and len(frame):
        function = getattr(import_module(output.module), spec.frame)
        frame = data.call(function, {"frame": frame} | spec.options)
    if spec.where and len(frame):
        frame = frame.query(spec.where)
    frame = frame.reset_index(drop=True)
    if frame.empty:
        figure = Figure(figsize=(5.5, 1))
        figure.text(0.5, 0.5, "This experiment has nothing to show here.", ha="center", va="center")
        return figure
    if spec.special:
        return getattr(special, spec.special)(frame)
    styles = _styles(spec, frame, data)
    panels = list(_panels(spec, with_places(spec, frame)))
    figure, axes = _figure(spec, panels)
    image = None
    for item in panels:
        panel = axes[item.row][item.column]
        image = _draw_layers(panel, item.rows, spec, styles, frame) or image
        style.set_title(panel, item.title)
    for panel in figure.axes:
        if not panel.has_data() and not panel.texts:
            panel.remove()
    lowest = {item.column: item.row for item in sorted(panels, key=lambda item: item.row)}
    for item in panels:
        above = item.row < lowest[item.column]
        set_axes(axes[item.row][item.column], above, output, frame, data)
    if image is not None:
        style.colour_bar(figure, image, fill(spec.colour.get("label", ""), output, frame, data))
    order = [look["label"] for look in styles.values()]
    style.legend_above(figure, order)
    return figure


def _styles(spec: Draw, frame: pd.DataFrame, data: Data) -> dict[Any, dict[str, Any]]:
    """Return the style of every value of the style column. A run's is the same in all figures."""
    if not spec.style:
        return {}
    values = list(frame[spec.style].dropna().unique())
    known = data.load("trained_runs") if spec.style == "run" else []
    texts = {str(value): spec.legend.format(readable(value)) for value in values} | spec.labels
    styles = style.make_styles(list(dict.fromkeys([*known, *values])), texts)
    for value, colour in spec.colours.items():
        styles.get(value, {})["color"] = colour
    if spec.ordered:
        for look, place in zip(styles.values(), np.linspace(0, 0.85, len(styles)), strict=True):
            look["color"] = to_hex(colormaps["viridis"](place))
    return {value: look for value, look in styles.items() if value in values}


def _panels(spec: Draw, frame: pd.DataFrame) -> Iterator[_Panel]:
    """Yield all panels in their places."""
    parts = list(grouped(frame, spec.panels)) if spec.panels else [((), frame)]
    across = list(frame[spec.across].unique()) if spec.across else []
    columns = _columns(spec, len(across) or len(parts))
    lines = -(-len(across) // columns)
    for place, (key, part) in enumerate(parts):
        if not across:
            yield _Panel(*divmod(place, columns), _title(spec, spec.panels, key, part), part)
        for number, value in enumerate(across):
            cell = part[part[spec.across] == value]
            if len(cell):
                line, column = divmod(number, columns)
                title = _title(spec, [*spec.panels, spec.across], (*key, value), cell)
                yield _Panel(place * lines + line, column, title, cell)


def _columns(spec: Draw, count: int) -> int:
    """Return the number of panels in a row, of so many."""
    most = spec.abreast or (_ACROSS if spec.across else _ABREAST)
    return -(-count // -(-count // most)) if spec.across else min(count, most)


def _title(spec: Draw, columns: list[str], key: tuple, rows: pd.DataFrame) -> str:
    values = {name: value_label(spec, value) for name, value in zip(columns, key, strict=True)}
    seed = {"seed": f"seed\u00a0{values['seed']}"} if values.get("seed") else {}
    panel = ", ".join(value for value in (values | seed).values() if value)
    return spec.title.format(**(rows.iloc[0].to_dict() | values | {"panel": panel})) or panel


def _figure(spec: Draw, panels: list[_Panel]) -> tuple[Figure, list[list[Axes]]]:
    rows, columns = (1 + max(getattr(item, side) for item in panels) for side in ("row", "column"))
    size = tuple(spec.size) or ((4.2, 3.0) if columns < 3 else (3.2, 2.9))
    margins = (_BESIDE if spec.colour else 0, 0.6)
    return style.grid(rows, columns, size, margins, sharey=spec.share_y)


def _draw_layers(
    panel: Axes, rows: pd.DataFrame, spec: Draw, styles: dict, frame: pd.DataFrame
) -> Any:
    """Draw all layers on one panel and return the image of a heat map."""
    image = None
    for layer in spec.layers:
        chosen = rows.query(layer["where"]) if "where" in layer else rows
        if chosen.empty and "at" not in layer:
            continue
        fixed = layer.get("fixed", {}) | {key: layer[key] for key in ("label",) if key in layer}
        if layer["mark"] == "heat":
            image = MARKS["heat"](panel, chosen, layer, fixed, 0, norm=_norm(spec, layer, frame))
            label_cells(panel, chosen, layer, spec)
        elif spec.style and layer.get("style", True):
            _draw_styled(panel, chosen, layer, spec, styles, fixed)
        else:
            MARKS[layer["mark"]](panel, chosen, _placed(layer, chosen), fixed, 0)
    return image


def _draw_styled(
    panel: Axes, rows: pd.DataFrame, layer: dict, spec: Draw, styles: dict, fixed: dict
) -> None:
    """Draw a layer once for each style."""
    present = [value for value in styles if (rows[spec.style] == value).any()]
    for number, value in enumerate(present):
        place = (number + 0.5) / len(present) - 0.5
        sized = _placed(layer, rows) | {"dodge_width": 1 / len(present)}
        of_value = rows[rows[spec.style] == value]
        MARKS[layer["mark"]](panel, of_value, sized, styles[value] | fixed, place)


def _placed(layer: dict, rows: pd.DataFrame) -> dict:
    """Return the layer with the columns `_x` and `_y` in place of categories."""
    sides = {side: f"_{side}" for side in ("x", "y") if is_category(rows, layer.get(side))}
    return layer | sides


def _norm(spec: Draw, layer: dict, frame: pd.DataFrame) -> Normalize:
    """Return the scale of colours, the same for all panels."""
    values = frame[layer["colour"]].astype(float)
    low, high = spec.colour.get("limits", (values.min(), values.max()))
    most = max(abs(low), abs(high)) or 1.0
    kind = spec.colour.get("scale", "linear")
    if kind == "log":
        return LogNorm(low, high, clip=True)
    if kind == "symlog":
        return SymLogNorm(spec.colour["linear"], vmin=-most, vmax=most, base=2)
    return Normalize(low, high)


def with_places(spec: Draw, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with numbers `_x` and `_y` for cells of heat maps and for categories."""
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
