"""Figures of heads removed from trained models: what is drawn, and the numbers beside it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import make_chapter
from drawn import lines_beyond
from matplotlib.colors import to_hex
from michel_files import MODEL, measured_model, one_model

from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.findings.figures import COLOURS
from headcount.findings.michel.curves import orders_figure
from headcount.findings.michel.measured import BLEU

NAMES = ("ablation", "transfer", "pruning", "kinds", "speed", "training")

pytestmark = pytest.mark.slow  # all of them draw


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    made = one_model(tmp_path_factory.mktemp("michel"))
    settings = {"model": MODEL, "ablation": AblationSettings(), "importance": RerankSettings()}
    found = make_chapter("michel", made.listed, settings)[1]
    return {name.removeprefix("michel_"): figure for name, figure in found.items()}


def test_there_is_one_of_each_and_it_can_be_laid_out(figures):
    assert sorted(figures) == sorted(NAMES)
    assert all("a.x-y" in figure.text for figure in figures.values())
    scored = ["ablation", "kinds", "pruning", "training"]
    assert tell_what_is_covered(figures) == scored
    assert all("Our BLEU is sacreBLEU's, the paper's" in figures[name].text for name in scored[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that failed is told by a warning
        figures["ablation"].drawing.draw_without_rendering()


def test_maps_have_the_effect_of_every_head(figures):
    panels = figures["ablation"].drawing.axes
    # Test and other, three kinds each, and the colour bar; dev chooses, and is not shown.
    assert len(panels) == 7
    encoder = panels[0].images[0].get_array()
    assert encoder[0].tolist() == [-8, 1] and encoder[1, 0] == 0
    assert np.ma.getmaskarray(encoder)[1, 1] or np.isnan(encoder[1, 1])  # no such head
    dots, rings = panels[0].lines
    assert dots.get_xydata().tolist() == [[0, 0], [1, 0]]  # p 0.0005 and 0.002
    assert rings.get_xydata().tolist() == [[0, 0]]  # 0.003 and 0.01 once corrected
    limits = panels[0].images[0].norm
    assert (limits.vmin, limits.vmax) == (-8, 8)
    ticks = [*panels[0].get_xticklabels(), *panels[0].get_yticklabels()]
    assert [tick.get_text() for tick in ticks] == ["0", "1", "0", "1"]  # heads, layers


def test_transfer_has_a_point_per_head(figures):
    panels = figures["transfer"].drawing.axes
    assert len(panels) == 3  # test and other, test and dev, other and dev
    drawn = [tuple(point) for group in panels[0].collections for point in group.get_offsets()]
    assert sorted(drawn)[0] == (-8, -4) and len(drawn) == 6
    assert panels[0].get_xlabel() == "BLEU change on test"
    assert panels[0].get_ylabel() == "BLEU change on other"
    assert len(figures["transfer"].data) == 18


def curve(panel, colour: str):
    """The line of a colour, not the hollow marks on it."""
    (line,) = (
        line
        for line in panel.lines
        if to_hex(line.get_color()) == colour.lower() and line.get_linestyle() == "-"
    )
    return line.get_xydata().tolist()


def test_curves_by_order(figures):
    ours, paper, small = figures["pruning"].drawing.axes
    # Of a BLEU of 50 with all heads: 51, 49.5, 41, 5.
    drawn = [[0, 100], [25, 102], [50, 99], [75, 82], [100, 10]]
    assert curve(ours, COLOURS[0]) == drawn
    assert ours.get_title(loc="left").endswith("test, BLEU 50.00 with all heads")
    hollow = [line for line in ours.lines if line.get_markerfacecolor() == "white"]
    assert hollow[0].get_xydata().tolist() == drawn[3:]  # the significant losses
    (star,) = (line for line in ours.lines if line.get_marker() == "*")
    assert star.get_xydata() == pytest.approx(
        np.array([[100 * 2 / 6, 78]])  # 39 of 50
    )
    assert curve(paper, COLOURS[0])[4] == pytest.approx([40, 100 * 32.48 / 36.05])
    assert len(small.lines) == 1
    assert paper.get_title(loc="left").startswith("wmt14.en-fr, paper")


@pytest.fixture(scope="module")
def with_measures(tmp_path_factory):
    """Tables, and figures, of the same model measured in more ways."""
    made = measured_model(tmp_path_factory.mktemp("measures"))
    settings = {"model": MODEL, "ablation": AblationSettings(), "importance": RerankSettings()}
    tables, drawn = make_chapter("michel", made.listed, settings)
    return tables, {name.removeprefix("michel_"): figure for name, figure in drawn.items()}


def test_other_measures_and_means_have_figures_of_their_own_where_they_were_measured(
    figures, with_measures
):
    _, drawn = with_measures
    assert set(drawn) - set(figures) == {"measures", "means"}
    (ours,) = drawn["measures"].drawing.axes
    # Of 50: 52, 49, 41 and 5.
    assert curve(ours, COLOURS[3]) == [[0, 100], [25, 104], [50, 98], [75, 82], [100, 10]]
    assert curve(ours, COLOURS[0]) == curve(figures["pruning"].drawing.axes[0], COLOURS[0])
    (ours,) = drawn["means"].drawing.axes
    (line,) = (
        line for line in ours.lines if line.get_label() == "importance, means in place of zeros"
    )
    assert line.get_ydata() == pytest.approx([100, 92, 90, 10])
    labels = [line.get_label() for line in ours.lines]
    assert "importance, zeros" in labels and "Shapley value" not in labels
    before = [each.get_xydata().tolist() for each in figures["pruning"].drawing.axes[0].lines]
    after = [each.get_xydata().tolist() for each in drawn["pruning"].drawing.axes[0].lines]
    assert before == after


def test_the_table_of_pruning_names_the_orders_that_are_there(with_measures):
    tables, _ = with_measures
    found = tables["michel_pruning"]
    ours = found.tidy[found.tidy["source"] == "ours"]
    assert {"shapley", "importance_mean", "fisher_rearranged"} < set(ours["order"])
    assert "shapley, by Shapley values, harmful heads first" in found.text
    assert "importance signed" not in found.text


def test_curves_by_kind(figures):
    ours, paper = figures["kinds"].drawing.axes
    assert curve(ours, COLOURS[0])[3] == [75, 94]  # 47 of 50
    found = curve(paper, COLOURS[2])[7]  # encoder–decoder attention
    assert found == pytest.approx([70, 100 * 10.59 / 36.05])
    assert set(figures["kinds"].data["scope"]) == {"enc_self"}


def test_of_no_bleu_there_is_no_share():
    """0.3 of 0 is beyond every axis, and once made a figure of kilometres."""
    points = pd.DataFrame({
        "pair": "a.x-y", "run": "baseline", "seed": 1, "test_set": "test", "scope": "all",
        "order": "importance", "percent": [0.0, 50.0], "bleu": [0.0, 0.3], "delta": [0.0, 0.3],
        "delta_low": [0.0, 0.0], "delta_high": [0.0, 0.5], "p": [1.0, 0.05], "source": "ours",
    })  # fmt: skip
    drawn = orders_figure([points], BLEU, ())
    (panel,) = drawn.drawing.axes
    assert panel.get_title(loc="left").endswith("BLEU 0.00 with all heads, no share of it")
    assert np.isnan(panel.lines[0].get_ydata()).all()
    drawn.drawing.draw_without_rendering()
    assert drawn.drawing.get_tightbbox().height < 10  # inches
    assert drawn.data["bleu"].tolist() == [0.0, 0.3]


def test_profiles_during_training(figures):
    ours, paper = figures["training"].drawing.axes
    labels = [line.get_label() for line in ours.lines]
    # Update 10 has a BLEU of 1.5, of which shares mean nothing.
    assert "update 20" in labels and "update 90" in labels and "update 10" not in labels
    assert ours.lines[1].get_ydata().tolist() == [100, 75, 25, 0]
    assert len(paper.lines) == 1 + 6  # of 16 epochs, beside the diagonal
    assert paper.lines[1].get_ydata()[[0, 2, 10]].tolist() == [100, 80.3, 0]


def test_speed_is_relative_to_all_heads(figures):
    (panel,) = figures["speed"].drawing.axes
    lines = [container.lines[0] for container in panel.containers]
    assert [line.get_ydata().tolist() for line in lines] == [[1, 3], [1, 1.5]]


def test_a_faster_phase_lies_in_its_panel_too(tmp_path):
    made = one_model(tmp_path)  # its decoder: 3 times as fast at most
    made.speed(
        ("a.x-y", "baseline", 4), {(0, "encode", 1): [9.0, 9.0], (50, "encode", 1): [1.0, 1.0]}
    )
    settings = {"model": MODEL, "ablation": AblationSettings(), "importance": RerankSettings()}
    drawing = make_chapter("michel", made.listed, settings)[1]["michel_speed"].drawing
    assert len(drawing.axes) == 2 and lines_beyond(drawing) == []
