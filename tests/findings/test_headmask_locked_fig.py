"""The figure of heads that were locked in, from hand-made files."""

import math

import pytest
from chapters import make_chapter
from headmask_files import HeadmaskFiles
from locked_runs import HELD, IMPT, PAIR, SETTINGS, add, locked_runs
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text


@pytest.mark.slow
def test_the_figure_draws_locked_heads_and_the_others(tmp_path):
    files = locked_runs(tmp_path)
    figure = make_chapter("headmask", files.lists(), SETTINGS)[1]["headmask_locked_fig"]
    left, right, below, _ = figure.drawing.axes  # one training measured slopes
    assert left.get_title(loc="left") == f"{HELD}\n{PAIR}, seed 1"
    # Heads 0 and 2, in the middle of their rows.
    assert [line.get_ydata()[0] for line in left.get_lines() if line.get_marker() == "<"] == [
        *(0.5, 2.5)
    ]
    labels = [text.get_text() for text in below.get_legend().get_texts()]
    assert labels == ["enc layer 0: head 0", "enc layer 1: head 0"]
    (legend,) = figure.drawing.legends
    words = ["locked in", "before and after", "other heads, median", "other heads, range"]
    assert [text.get_text() for text in legend.get_texts()] == [*words, "held updates"]
    locked = [line for line in right.get_lines() if line.get_marker() == "o"]
    assert list(locked[0].get_ydata())[2:4] == [4, 2] and math.isnan(locked[0].get_ydata()[4])
    colours = [line.get_color() for line in locked]
    assert colours == [key.get_color() for key in below.get_legend().legend_handles]
    assert len(set(colours)) == 2  # of two layers
    (middle, *_) = right.get_lines()
    assert list(middle.get_ydata()) == pytest.approx([9, 9, 0.25, 0.25, 0.25])
    assert figure.data.query("head == 0 and kind == 'enc_self' and layer == 0")[
        "locked"
    ].tolist() == [*(0, 0, 1, 1, 0)]


@pytest.mark.slow
def test_a_legend_is_nearer_to_its_panel_than_to_the_next_one(tmp_path):
    made = HeadmaskFiles(tmp_path)
    for run in (IMPT, HELD):
        on = [1, 1, 0, 0, 0, 0]
        add(made, run, 1, {40: on, 100: on}, {step: [(1, 2, 1)] * 6 for step in (40, 100)})
    drawing = make_chapter("headmask", made.lists(), SETTINGS)[1]["headmask_locked_fig"].drawing
    FigureCanvasAgg(drawing).draw()
    _, first, below, second, *_ = drawing.axes
    legend = below.get_legend().get_window_extent()
    label = first.xaxis.label.get_window_extent()
    (title,) = [
        text.get_window_extent()
        for text in second.findobj(Text)
        if text.get_text() == second.get_title(loc="left")
    ]
    points = [(above.y0 - below.y1) * 72 / drawing.dpi
              for above, below in ((label, legend), (legend, title))]  # fmt: skip
    assert 0 < points[0] < points[1] and points[1] > 12


@pytest.mark.slow
def test_without_slopes_the_figure_says_so(tmp_path):
    made = HeadmaskFiles(tmp_path)
    add(made, "baseline", 1, {})
    figure = make_chapter("headmask", made.lists(), SETTINGS)[1]["headmask_locked_fig"]
    (words,) = [text.get_text() for text in figure.drawing.texts]
    assert words == "No run of this experiment measures importance in training."
