"""Axes of panels: labels, scales, limits, ticks, and the names of cells of heat maps."""

from typing import Any

import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes

from headcount.analysis.captions import fill
from headcount.analysis.figures.style import set_log_ticks, symlog_ticks
from headcount.analysis.frames import Data
from headcount.analysis.outputs import Draw, Output

_LETTERS = 8.5  # letters of tick labels in an inch
_MOST_ROWS = 30  # of a heat map, each with a name


def value_label(spec: Draw, value: Any) -> str:
    """Return the text for a value: its label, or the value itself."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if pd.isna(value) else spec.labels.get(str(value), f"{value}")


def label_cells(panel: Axes, rows: pd.DataFrame, layer: dict, spec: Draw) -> None:
    """Name rows and columns of a heat map, with lines where the first name of rows changes."""
    sides = {"y": [layer["y"]] if isinstance(layer["y"], str) else layer["y"]}
    if not layer.get("ends"):
        sides["x"] = [layer["x"]]
    for side, columns in sides.items():
        cells = rows.drop_duplicates(f"_{side}").sort_values(f"_{side}")
        if side == "x":
            cells = cells.iloc[:: -(-len(cells) // 10)]
        elif len(cells) > _MOST_ROWS or layer.get("first_names"):
            columns = columns[:1]
            cells = cells[cells[columns[0]] != cells[columns[0]].shift()]
        names = [" ".join(value_label(spec, v) for v in row) for row in cells[columns].to_numpy()]
        getattr(panel, f"set_{side}ticks")(cells[f"_{side}"], names)
    panel.tick_params(labelsize="small")
    if len(sides["y"]) > 1:
        for place in rows.groupby(sides["y"][0], sort=False)["_y"].min().iloc[1:]:
            panel.axhline(place - 0.5, color=layer.get("lines", "black"), linewidth=1.2)


def set_axes(panel: Axes, above: bool, output: Output, frame: pd.DataFrame, data: Data) -> None:
    """Set both axes. Y is named at the left only where all panels share it, as in heat maps."""
    spec = output.draw
    for side, options in (("x", spec.x), ("y", spec.y)):
        set_axis(panel, side, options, frame, fill(options.get("label", ""), output, frame, data))
    heats = [layer for layer in spec.layers if layer["mark"] == "heat"]
    is_heat = bool(heats) and not heats[0].get("own_cells")
    if (is_heat or spec.share_y) and not panel.get_subplotspec().is_first_col():
        panel.set_ylabel("")
        panel.tick_params(labelleft=False)
    if is_heat and above:
        panel.set_xlabel("")


def set_axis(panel: Axes, side: str, options: dict, frame: pd.DataFrame, label: str) -> None:
    """Set label, scale, limits and ticks of one axis."""
    axis = getattr(panel, f"{side}axis")
    axis.label.set(text=label, fontsize="medium")
    scale = options.get("scale", "linear")
    if scale.startswith("log"):
        getattr(panel, f"set_{side}scale")("log", base=2 if scale == "log2" else 10)
        set_log_ticks(axis)
    elif scale == "symlog":
        _set_symlog(panel, side, options.get("linear", 1))
    if options.get("integer"):
        width = panel.figure.get_size_inches()[0] / panel.get_subplotspec().get_gridspec().ncols
        axis.set_major_locator(ticker.MaxNLocator(6 if width > 2.5 else 4, integer=True))
    if "ticks" in options:
        _set_ticks(panel, side, options["ticks"], frame)
    axis.set_inverted(options.get("reverse", False) or axis.get_inverted())
    if options.get("tight"):
        panel.margins(**{side: 0})
    if options.get("percent"):
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:.0%}"))
    getattr(panel, f"set_{side}lim")(options.get("min"), options.get("max"))


def _set_symlog(panel: Axes, side: str, linear: float) -> None:
    """Make one axis logarithmic beyond ± `linear`, if it reaches far beyond."""
    most = max(map(abs, getattr(panel, f"get_{side}lim")()))
    if most > 2 * linear:
        getattr(panel, f"set_{side}scale")("symlog", linthresh=linear, base=2)
        ticks = symlog_ticks(linear, most)
        getattr(panel, f"set_{side}ticks")(list(ticks), list(ticks.values()))


def _set_ticks(panel: Axes, side: str, ticks: Any, frame: pd.DataFrame) -> None:
    """Put ticks at the values of a column, at `{value: label}`, or at a list of values.

    `{column: name, where: query}` takes the values of some rows.
    """
    if isinstance(ticks, dict) and "column" in ticks:
        frame, ticks = frame.query(ticks["where"]), ticks["column"]
    if isinstance(ticks, str) and not pd.api.types.is_numeric_dtype(frame[ticks]):
        values = list(frame[ticks].unique())
        ticks = dict(enumerate(values))
        panel.grid(axis=side, visible=False)
    elif isinstance(ticks, str):
        values = sorted(frame[ticks].dropna().unique())
        ticks = {value: f"{value:g}" for value in values}
    elif isinstance(ticks, list):
        ticks = {value: f"{value:g}" for value in ticks}
    places = [float(value) for value in ticks]
    rotation = {"rotation": 30, "ha": "right"} if side == "x" and _is_long(panel, ticks) else {}
    getattr(panel, f"set_{side}ticks")(places, list(ticks.values()), **rotation)
    getattr(panel, f"{side}axis").set_minor_locator(ticker.NullLocator())


def _is_long(panel: Axes, ticks: dict) -> bool:
    """Return whether the labels of ticks need more than the width of a panel."""
    columns = panel.get_subplotspec().get_gridspec().ncols
    lengths = (max(map(len, str(label).split("\n"))) for label in ticks.values())
    return sum(lengths) > _LETTERS * panel.figure.get_size_inches()[0] / columns
