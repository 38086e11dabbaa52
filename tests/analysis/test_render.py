"""The renderer: panels, styles, marks and axes from a declaration."""

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.figures.render import draw
from headcount.analysis.figures.style import COLOURS, make_styles
from headcount.analysis.frames import Data
from headcount.analysis.outputs import Output

POINTS = pd.DataFrame(
    {
        "pair": ["p"] * 4 + ["q"] * 2,
        "run": ["a", "a", "b", "b", "a", "a"],
        "masked": [0, 2, 0, 2, 0, 2],
        "score": [30.0, 20, 28, 24, 10, 5],
        "low": [29.0, 18, 27, 23, 9, 4],
        "high": [31.0, 21, 29, 25, 12, 6],
    }
)
LINE = {"mark": "line", "x": "masked", "y": "score", "low": "low", "high": "high"}


def drawn(frame, **spec):
    fields = {"name": "f", "module": "m", "chapter": "c", "form": "figure", "title": "T"}
    output = Output(**fields, function="f", draw=spec)
    return draw(output, frame, Data({}, {}))


def lines(panel):
    return {line.get_label(): line.get_xydata().tolist() for line in panel.get_lines()}


def test_a_panel_for_each_pair_and_a_curve_for_each_run():
    axes = {"x": {"label": "masked heads", "integer": True}, "y": {"label": "BLEU", "min": 0}}
    figure = drawn(POINTS, panels=["pair"], style="run", layers=[LINE], **axes)
    first, second = figure.axes
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["p", "q"]
    assert lines(first) == {"a": [[0, 30], [2, 20]], "b": [[0, 28], [2, 24]]}
    assert lines(second) == {"a": [[0, 10], [2, 5]]}
    assert first.get_xlabel() == "masked heads" and first.get_ylim()[0] == 0
    band = first.collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == (18, 31)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_panels_across_and_a_reference():
    layers = [{"mark": "level", "y": "score", "where": "masked == 0", "label": "none"}]
    bars = LINE | {"mark": "points", "where": "masked > 0"}
    figure = drawn(POINTS, panels=["pair"], across="run", layers=[*layers, bars])
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    assert titles == ["p, a", "p, b", "q, a"]  # q has no run b
    panel = figure.axes[0]
    assert panel.get_lines()[0].get_ydata() == [30, 30]
    (_, _, (error,)) = panel.containers[0]
    assert error.get_segments()[0].tolist() == [[2, 18], [2, 21]]


def test_categories_and_bars_side_by_side():
    layer = {"mark": "bars", "x": "pair", "y": "score", "dodge": 0.8, "where": "masked == 0"}
    figure = drawn(POINTS, style="run", layers=[layer], x={"ticks": "pair"})
    (panel,) = figure.axes
    assert [text.get_text() for text in panel.get_xticklabels()] == ["p", "q"]
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in panel.patches)
    assert spans[0][1] <= spans[1][0] + 1e-9  # no overlap
    assert sorted(bar.get_height() for bar in panel.patches) == [10, 28, 30]


def test_heat_maps_leave_missing_cells_grey_and_share_a_scale():
    rows = {"kind": ["enc", "enc", "dec"], "layer": [0, 0, 0], "head": [0, 1, 1]}
    frame = pd.DataFrame(rows | {"value": [1.0, 4.0, 0.5], "run": "a"})
    layer = {"mark": "heat", "x": "head", "y": ["kind", "layer"], "colour": "value"}
    colour = {"scale": "log", "limits": [0.25, 4], "label": "importance"}
    figure = drawn(frame, across="run", layers=[layer], colour=colour)
    image = figure.axes[0].get_images()[0]
    cells = np.ma.filled(image.get_array(), np.nan)
    np.testing.assert_array_equal(cells, [[1, 4], [np.nan, 0.5]])
    assert (image.norm.vmin, image.norm.vmax) == (0.25, 4)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["enc", "dec"]


@pytest.mark.parametrize("mark", ["scatter", "labels", "span", "vertical", "diagonal"])
def test_every_other_mark_draws_something(mark):
    layer = {"mark": mark, "x": "masked", "y": "score", "low": "low", "high": "high", "text": "run"}
    (panel,) = drawn(POINTS, layers=[layer]).axes
    marks = [*panel.lines, *panel.collections, *panel.patches, *panel.texts]
    assert marks


def test_styles_are_distinct():
    styles = make_styles([f"run{n}" for n in range(13)], {"run1": "first"})
    looks = {(style["color"], style["linestyle"], style["marker"]) for style in styles.values()}
    assert len(looks) == 13 and styles["run0"]["color"] == COLOURS[0]
    assert styles["run1"]["label"] == "first"
    assert drawn(POINTS[:0], layers=[LINE]).texts[0].get_text()


def test_symmetric_logarithmic_axes_have_ticks_at_doublings():
    frame = pd.DataFrame({"pair": "p", "x": [-30.0, 1, 40], "y": [-1.0, 0, 1]})
    axes = {"x": {"scale": "symlog", "linear": 2}, "y": {"scale": "symlog", "linear": 2}}
    layers = [{"mark": "scatter", "x": "x", "y": "y"}]
    (panel,) = drawn(frame, panels=["pair"], layers=layers, **axes).axes
    labels = {label.get_text() for label in panel.get_xticklabels()}
    assert {"−32", "−8", "−2", "0", "2", "8", "32"} <= labels


def test_an_empty_layer_has_no_entry_in_the_legend():
    layers = [LINE | {"style": False, "label": "all"}]
    layers += [LINE | {"style": False, "label": "none", "where": "masked > 9"}]
    figure = drawn(POINTS, panels=["pair"], style="run", layers=layers)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["all"]


def test_cells_of_every_panel_and_names_of_groups_of_rows():
    rows = pd.DataFrame({"run": ["a"] * 4 + ["b"] * 2, "step": [0, 1, 0, 1, 0, 5], "p": 0.5})
    rows = rows.assign(kind=["enc", "enc", "dec", "dec", "dec", "dec"], head=[0, 0, 0, 0, 1, 1])
    layer = {"mark": "heat", "x": "step", "y": ["kind", "head"], "colour": "p", "own_cells": True}
    first, second, *_ = drawn(rows, panels=["run"], layers=[layer]).axes
    assert first.images[0].get_array().shape == (2, 2)
    assert second.images[0].get_array().shape == (1, 2)  # steps 0 and 5, and one head
    assert [label.get_text() for label in first.get_yticklabels()] == ["enc", "dec"]
    assert [label.get_text() for label in second.get_xticklabels()] == ["0", "5"]
