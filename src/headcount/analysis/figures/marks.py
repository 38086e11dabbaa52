"""Marks that a figure's declaration names, and the axes of panels.

Marks draw rows of a frame on one panel. Arguments: the panel, the rows, the layer of the
declaration, the style of these rows, and `place`, a shift along x between −0.5 and 0.5 for styles
side by side.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patheffects import withStroke

from headcount.analysis.captions import fill
from headcount.analysis.figures.style import GREY, set_log_ticks
from headcount.analysis.frames import Data
from headcount.analysis.outputs import Draw, Output

_RIM = withStroke(linewidth=2, foreground="white")  # symbols are seen on dark cells
_MARKED = 8  # markers on a long curve


def line(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Draw a curve, with `low` and `high` as a band or as error bars (`interval: bars`).

    `low` is drawn no lower than `floor`. `mean: true` draws the mean of all rows with the same
    `x`, with a band from least to largest.
    """
    if layer.get("mean"):
        rows = rows.groupby(layer["x"])[layer["y"]].agg(["mean", "min", "max"]).reset_index()
        layer = layer | {"y": "mean", "low": "min", "high": "max"}
    x, y = _places(rows, layer, place)
    if layer.get("interval") == "bars":
        bars = {"capsize": 2, "markersize": 4, "linewidth": 1.2}
        panel.errorbar(x, y, _reach(rows, layer), **(bars | style))
        return
    often = max(1, len(rows) // _MARKED)
    panel.plot(x, y, **({"linewidth": 1.4, "markersize": 4, "markevery": often} | style))
    if "low" in layer:
        low, high = (rows[layer[side]].astype(float) for side in ("low", "high"))
        band = {"color": style.get("color", GREY), "alpha": 0.14, "linewidth": 0}
        panel.fill_between(x, low.clip(lower=layer.get("floor")), high, **band)


def points(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Draw points, with error bars from `low` to `high` where the layer has these."""
    look = {"markersize": 5} | style | {"linestyle": ""}
    line(panel, rows, layer | {"interval": "bars"}, look, place)


def bars(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Draw bars of `y` at `x`, from `bottom` on, with error bars from `low` to `high`."""
    x, width = rows[layer["x"]].astype(float), layer.get("width", 0.8)
    look = {key: style[key] for key in ("color", "label", "alpha", "hatch") if key in style}
    if layer.get("dodge"):
        width *= layer["dodge_width"]
        x = x + place * layer.get("width", 0.8)
    bottom = rows[layer["bottom"]].astype(float) if "bottom" in layer else 0
    error = {"yerr": _reach(rows, layer), "capsize": 2, "ecolor": "black"}
    panel.bar(x, rows[layer["y"]].astype(float), width, bottom, **error, **look)
    panel.grid(axis="x", visible=False)


def scatter(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Draw a dot for every row."""
    x, y = _places(rows, layer, place)
    look = {key: style[key] for key in ("color", "marker", "label", "alpha") if key in style}
    panel.scatter(x, y, s=layer.get("size", 16), **({"linewidth": 0} | look))


def level(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Draw a horizontal line at `y` of the first row, or at the number `at`."""
    if "at" in layer or len(rows):
        y = layer["at"] if "at" in layer else float(rows[layer["y"]].iloc[0])
        panel.axhline(y, **_reference(style))


def vertical(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Draw a vertical line at `x` of every row, or at the number `at`."""
    for x in [layer["at"]] if "at" in layer else rows[layer["x"]].unique():
        panel.axvline(x, **_reference(style))


def span(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Fill the horizontal band between `low` and `high` of every row."""
    look = {"color": style.get("color", GREY), "alpha": 0.25, "linewidth": 0, "zorder": 0.5}
    for low, high in rows[[layer["low"], layer["high"]]].to_numpy(float):
        panel.axhspan(low, high, label=style.get("label"), **look)


def diagonal(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Draw the line on which x and y are equal, and make both axes alike."""
    panel.axline((0, 0), slope=1, **_reference(style))
    sides = np.array([panel.get_xlim(), panel.get_ylim()])
    room = 0.04 * np.ptp(sides)
    ends = (sides.min() - room, sides.max() + room)
    panel.set(xlim=ends, ylim=ends, aspect="equal")


def labels(panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float) -> None:
    """Write the column `text` beside points."""
    x, y = _places(rows, layer, place)
    offset = {"xytext": layer.get("offset", (4, 3)), "textcoords": "offset points"}
    for text, *at in zip(rows[layer["text"]], x, y, strict=True):
        panel.annotate(str(text), at, fontsize=7.5, color=style.get("color", "black"), **offset)


def heat(
    panel: Axes, rows: pd.DataFrame, layer: dict, style: dict, place: float, norm: Normalize
) -> Any:
    """Draw a cell for every `x` and `y`, coloured by `colour`. Cells without a row are grey.

    `symbols` maps conditions, such as a boolean column, to a text for the cells that meet them.
    `text` is written into all cells, with names of columns in braces.
    """
    table = rows.pivot(index="_y", columns="_x", values=layer["colour"]).astype(float)
    height, width = (range(int(rows[place].max()) + 1) for place in ("_y", "_x"))
    table = table.reindex(index=height, columns=width)
    panel.set_facecolor("#BBBBBB")
    panel.grid(visible=False)
    image = panel.imshow(table, aspect="auto", cmap=layer.get("map", "PuOr_r"), norm=norm)
    look = {"ha": "center", "va": "center"}
    for condition, text in layer.get("symbols", {}).items():
        chosen = rows[rows.eval(condition).fillna(False).astype(bool)]
        for place in zip(chosen["_x"], chosen["_y"], strict=True):
            panel.annotate(text, place, fontsize=8, path_effects=[_RIM], **look)
    for row in rows.to_dict("records") if "text" in layer else ():
        dark = sum(image.cmap(image.norm(row[layer["colour"]]))[:3]) < 1.7
        look |= {"fontsize": 7, "color": "white" if dark else "black"}
        text = layer["text"].format(**row).strip()
        panel.text(row["_x"], row["_y"], text, **look).set_in_layout(False)
    return image


# Marks by name.
MARKS = {
    function.__name__: function
    for function in (line, points, bars, scatter, level, vertical, span, diagonal, labels, heat)
}


def _places(rows: pd.DataFrame, layer: dict, place: float) -> np.ndarray:
    x, y = rows[[layer["x"], layer["y"]]].to_numpy(float).T
    return np.array([x + place * layer.get("dodge", 0), y])


def _reach(rows: pd.DataFrame, layer: dict) -> np.ndarray | None:
    """Return lengths of error bars below and above, 0 where no interval is known."""
    if "low" not in layer:
        return None
    middle = rows[layer["y"]].astype(float)
    low, high = (rows[layer[side]].astype(float).fillna(middle) for side in ("low", "high"))
    low = low.clip(lower=layer.get("floor"))
    return np.array([(middle - low).clip(lower=0), (high - middle).clip(lower=0)])


def _reference(style: dict) -> dict[str, Any]:
    look = {"color": "black", "linestyle": "-.", "linewidth": 0.9, "label": None} | style
    return {key: look[key] for key in ("color", "linestyle", "linewidth", "label")}


def value_label(spec: Draw, value: Any) -> str:
    """Return the text for a value: its label, or the value itself."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if pd.isna(value) else spec.labels.get(str(value), f"{value}")


def label_cells(panel: Axes, rows: pd.DataFrame, layer: dict, spec: Draw) -> None:
    """Name rows and columns of a heat map, with lines where the first name of rows changes."""
    sides = {"y": [layer["y"]] if isinstance(layer["y"], str) else layer["y"], "x": [layer["x"]]}
    for side, columns in sides.items():
        cells = rows.drop_duplicates(f"_{side}").sort_values(f"_{side}")
        if side == "x":
            cells = cells.iloc[:: -(-len(cells) // 8)]
        elif len(columns) > 1:
            columns = columns[:1]
            cells = cells[cells[columns[0]] != cells[columns[0]].shift()]
        names = [" ".join(value_label(spec, v) for v in row) for row in cells[columns].to_numpy()]
        if side == "x":  # the corpus and the languages of a pair
            names = [name.replace(".", ".\n") if len(name) > 8 else name for name in names]
        getattr(panel, f"set_{side}ticks")(cells[f"_{side}"], names)
    panel.tick_params(labelsize="small")
    if len(sides["y"]) > 1:
        for place in rows.groupby(sides["y"][0], sort=False)["_y"].min().iloc[1:]:
            panel.axhline(place - 0.5, color=layer.get("lines", "black"), linewidth=1.2)


def set_axes(panel: Axes, above: bool, output: Output, frame: pd.DataFrame, data: Data) -> None:
    """Set both axes. Y is named at the left only where all panels share it, as in heat maps."""
    spec = output.draw
    for side, options in (("x", spec.x), ("y", spec.y)):
        label = fill(options.get("label", ""), output, frame, data)
        _set_axis(panel, side, options, frame, label)
    heats = [layer for layer in spec.layers if layer["mark"] == "heat"]
    is_heat = bool(heats) and not heats[0].get("own_cells")
    if (is_heat or spec.share_y) and not panel.get_subplotspec().is_first_col():
        panel.set_ylabel("")
        panel.tick_params(labelleft=False)
    if is_heat and above:
        panel.set_xlabel("")


def _set_axis(panel: Axes, side: str, options: dict, frame: pd.DataFrame, label: str) -> None:
    """Set label, scale, limits and ticks of one axis: at a list of values or at categories."""
    axis = getattr(panel, f"{side}axis")
    axis.label.set(text=label, fontsize="medium")
    if options.get("scale") == "log":
        getattr(panel, f"set_{side}scale")("log")
        set_log_ticks(axis)
    elif options.get("scale") == "symlog":
        getattr(panel, f"set_{side}scale")("symlog", linthresh=options["linear"], base=2)
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    if options.get("integer"):
        width = panel.figure.get_size_inches()[0] / panel.get_subplotspec().get_gridspec().ncols
        axis.set_major_locator(ticker.MaxNLocator(6 if width > 2.5 else 4, integer=True))
    if isinstance(ticks := options.get("ticks"), str):
        names = frame[ticks].unique()
        axis.set_ticks(range(len(names)), names)
        panel.grid(axis=side, visible=False)
    elif ticks is not None:
        axis.set_ticks(ticks)
    getattr(panel, f"set_{side}lim")(options.get("min"), options.get("max"))
