"""The renderer: panels, styles, marks and axes of a figure, from its declaration."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, SymLogNorm, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import (
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    StrMethodFormatter,
)

from headcount.analysis.captions import fill
from headcount.analysis.cells import readable
from headcount.analysis.collapse import collapse_labels, collapsed_in_training
from headcount.analysis.figures import special
from headcount.analysis.figures.marks import MARKS
from headcount.analysis.figures.prepare import is_category, prepared, with_places
from headcount.analysis.figures.style import (
    PAGE,
    colour_bar,
    grid,
    legend_above,
    make_styles,
    message,
    set_title,
    shades,
    style_groups,
    use_style,
)
from headcount.analysis.frames import RUN, Data, grouped
from headcount.analysis.outputs import Draw, Output

_ABREAST = 3
_NARROWEST = 2.0  # inches of a panel
_BESIDE = 1.2  # inches of a colour bar with its label


class _Panel(NamedTuple):
    """One panel: its place in the grid, its title and its rows."""

    row: int
    column: int
    title: str
    rows: pd.DataFrame


def draw(output: Output, frame: pd.DataFrame, data: Data) -> Figure:
    """Draw a figure from the frame of an output."""
    use_style()
    if output.draw.special:
        function = getattr(special, output.draw.special)
        return data.call(function, {"frame": frame, "output": output} | output.draw.options)
    spec, frame = prepared(output.draw, frame)
    output = output.model_copy(update={"draw": spec})
    if frame.empty:
        return message("This experiment has no such run.")
    styles = _styles(output, frame, data)
    panels = list(_panels(spec, with_places(spec, frame), list(styles)))
    figure, axes = _figure(spec, panels)
    image = None
    for item in panels:
        panel = axes[item.row][item.column]
        image = _draw_layers(panel, item.rows, spec, styles, frame) or image
        set_title(panel, item.title)
    used = {(item.row, item.column) for item in panels}
    for row, line in enumerate(axes):
        for column, panel in enumerate(line):
            if (row, column) not in used:
                panel.remove()
    for item in panels:
        _set_axes(
            axes[item.row][item.column], (item.row + 1, item.column) in used, output, frame, data
        )
    if image is not None:
        colour_bar(figure, image, fill(spec.colour.get("label", ""), output, frame, data))
    legend_above(figure, (axes[item.row][item.column] for item in panels))
    return figure


def _styles(output: Output, frame: pd.DataFrame, data: Data) -> dict[Any, dict[str, Any]]:
    """Return the style of every value of the style column."""
    spec, column = output.draw, output.draw.style
    if not column:
        return {}
    values = list(frame[column].dropna().unique())
    collapsed = {}
    if column == "run" and "masks" in output.kinds and set(RUN) <= set(frame):
        collapsed = collapse_labels(frame, data.call(collapsed_in_training))
    labels = {str(value): spec.legend.format(readable(value)) for value in values} | spec.labels
    styles = make_styles(values, labels, collapsed)
    if spec.ordered:
        for style, colour in zip(styles.values(), shades(len(styles)), strict=True):
            style["color"] = colour
    return styles


def _panels(spec: Draw, frame: pd.DataFrame, values: list[Any]) -> Iterator[_Panel]:
    """Yield all panels in their places."""
    groups = style_groups(values) if spec.style and spec.split_styles else [None]
    place, across = 0, list(frame[spec.across].unique()) if spec.across else []
    columns = _columns(spec, frame, len(groups))
    for key, rows in grouped(frame, spec.panels) if spec.panels else [((), frame)]:
        for group in groups:
            part = rows[rows[spec.style].isin(group)] if group is not None else rows
            if across:
                lines = -(-len(across) // columns)
                for number, value in enumerate(across):
                    cell = part[part[spec.across] == value]
                    if len(cell):
                        title = _title(spec, [*spec.panels, spec.across], (*key, value), cell)
                        yield _Panel(
                            place * lines + number // columns, number % columns, title, cell
                        )
                place += 1
            elif len(part):
                title = _title(spec, spec.panels, key, part)
                yield _Panel(place // columns, place % columns, title, part)
                place += 1


def _columns(spec: Draw, frame: pd.DataFrame, groups: int) -> int:
    """Return the number of panels in a row."""
    most = int((PAGE - _BESIDE * bool(spec.colour)) / _NARROWEST)
    if spec.across:
        count = frame[spec.across].nunique()
        return -(-count // -(-count // (spec.abreast or most)))
    count = grouped(frame, spec.panels).ngroups * groups if spec.panels else groups
    return min(count, spec.abreast or _ABREAST)


def _title(spec: Draw, columns: list[str], key: tuple, rows: pd.DataFrame) -> str:
    values = {name: _label(spec, value) for name, value in zip(columns, key, strict=True)}
    seed = {"seed": f"seed {values['seed']}"} if values.get("seed") else {}
    panel = ", ".join(value for value in (values | seed).values() if value)
    if spec.title:
        return spec.title.format(panel=panel, **(rows.iloc[0].to_dict() | values))
    return panel


def _label(spec: Draw, value: Any) -> str:
    return "" if pd.isna(value) else spec.labels.get(str(value), readable(value))


def _figure(spec: Draw, panels: list[_Panel]) -> tuple[Figure, list[list[Axes]]]:
    rows, columns = (1 + max(getattr(item, side) for item in panels) for side in ("row", "column"))
    size = tuple(spec.size) or ((4.2, 3.0) if columns < 3 else (3.2, 2.9))
    margins = (_BESIDE if spec.colour else 0, 0.6)
    return grid(rows, columns, size, margins, sharey=spec.share_y)


def _draw_layers(
    panel: Axes, rows: pd.DataFrame, spec: Draw, styles: dict, frame: pd.DataFrame
) -> Any:
    """Draw all layers on one panel; return the image of a heat map."""
    image = None
    for layer in spec.layers:
        chosen = rows.query(layer["where"]) if "where" in layer else rows
        fixed = dict(layer.get("fixed", {}))
        if "label" in layer:
            fixed["label"] = layer["label"]
        if layer["mark"] == "heat":
            image = MARKS["heat"](panel, chosen, layer, fixed, 0, norm=_norm(spec, layer, frame))
            _label_cells(panel, chosen, layer, spec)
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
        MARKS[layer["mark"]](
            panel, rows[rows[spec.style] == value], sized, styles[value] | fixed, place
        )


def _placed(layer: dict, rows: pd.DataFrame) -> dict:
    """Return the layer with the columns `_x` and `_y` in place of categories."""
    sides = {side: f"_{side}" for side in ("x", "y") if is_category(rows, layer.get(side))}
    return layer | sides


def _norm(spec: Draw, layer: dict, frame: pd.DataFrame) -> Normalize:
    """Return the scale of colours, the same for all panels."""
    values = frame[layer["colour"]].astype(float)
    low, high = spec.colour.get("limits", (values.min(), values.max()))
    kind, centre = spec.colour.get("scale", "linear"), spec.colour.get("centre")
    most = max(abs(low), abs(high)) or 1.0
    if kind == "log":
        return LogNorm(low, high, clip=True)
    if kind == "symlog":
        return SymLogNorm(spec.colour.get("linear", most / 100), vmin=-most, vmax=most)
    if centre is not None:
        reach = max(abs(low - centre), abs(high - centre)) or 1.0
        return TwoSlopeNorm(centre, centre - reach, centre + reach)
    return Normalize(low, high)


def _label_cells(panel: Axes, rows: pd.DataFrame, layer: dict, spec: Draw) -> None:
    """Name rows and columns of a heat map, with a line where the first name of rows changes.

    With `names: 1`, only rows where the first name changes are named.
    """
    for side in ("x", "y"):
        columns = [layer[side]] if isinstance(layer[side], str) else layer[side]
        cells = rows.drop_duplicates(f"_{side}").sort_values(f"_{side}")
        step = -(-len(cells) // 10) if side == "x" else 1
        cells = cells.iloc[::step]
        if side == "y" and "names" in layer:
            columns = columns[: layer["names"]]
            cells = cells[cells[columns].ne(cells[columns].shift()).any(axis=1)]
        names = [
            " ".join(_label(spec, value) for value in row) for row in cells[columns].to_numpy()
        ]
        getattr(panel, f"set_{side}ticks")(cells[f"_{side}"], names)
    panel.tick_params(labelsize="small")
    if not isinstance(layer["y"], str):
        firsts = rows.drop_duplicates("_y").sort_values("_y")
        changes = firsts[layer["y"][0]].ne(firsts[layer["y"][0]].shift())
        for place in firsts.loc[changes, "_y"].iloc[1:]:
            panel.axhline(place - 0.5, color="black", linewidth=1.2)


def _set_axes(panel: Axes, above: bool, output: Output, frame: pd.DataFrame, data: Data) -> None:
    """Set both axes; a heat map names its cells only at the left and at the bottom."""
    spec = output.draw
    for side, options in (("x", spec.x), ("y", spec.y)):
        _set_axis(panel, side, options, frame, fill(options.get("label", ""), output, frame, data))
    heats = [layer for layer in spec.layers if layer["mark"] == "heat"]
    if heats and not heats[0].get("own_cells"):
        if not panel.get_subplotspec().is_first_col():
            panel.set(yticklabels=[], ylabel="")
        if above:
            panel.set(xlabel="")


def _set_axis(panel: Axes, side: str, options: dict, frame: pd.DataFrame, label: str) -> None:
    """Set label, scale, limits and ticks of one axis."""
    axis = getattr(panel, f"{side}axis")
    axis.label.set(text=label, fontsize="medium")
    scale = options.get("scale", "linear")
    if scale.startswith("log"):
        getattr(panel, f"set_{side}scale")("log", base=2 if scale == "log2" else 10)
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    elif scale == "symlog":
        getattr(panel, f"set_{side}scale")("symlog", linthresh=options.get("linear", 1))
    if options.get("integer"):
        axis.set_major_locator(MaxNLocator(6, integer=True))
    if "ticks" in options:
        _set_ticks(panel, side, options["ticks"], frame)
    if options.get("percent"):
        axis.set_major_formatter(StrMethodFormatter("{x:.0%}"))
    limits = {
        name: options[key] for key, name in (("min", "bottom"), ("max", "top")) if key in options
    }
    if side == "x":
        limits = {{"bottom": "left", "top": "right"}[name]: value for name, value in limits.items()}
    getattr(panel, f"set_{side}lim")(**limits)


def _set_ticks(panel: Axes, side: str, ticks: Any, frame: pd.DataFrame) -> None:
    """Put ticks at the values of a column, at `{value: label}`, or at a list of values."""
    if isinstance(ticks, str) and not pd.api.types.is_numeric_dtype(frame[ticks]):
        values = list(frame[ticks].unique())
        ticks = dict(enumerate(values))
    elif isinstance(ticks, str):
        values = sorted(frame[ticks].dropna().unique())
        ticks = {value: f"{value:g}" for value in values}
    elif isinstance(ticks, list):
        ticks = {value: f"{value:g}" for value in ticks}
    places = [float(value) for value in ticks]
    rotation = {"rotation": 30, "ha": "right"} if side == "x" and _is_long(ticks) else {}
    getattr(panel, f"set_{side}ticks")(places, list(ticks.values()), **rotation)
    getattr(panel, f"{side}axis").set_minor_locator(NullLocator())


def _is_long(ticks: dict) -> bool:
    return sum(len(str(label)) for label in ticks.values()) > 34
