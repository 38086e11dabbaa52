"""What every figure keeps to: words that can be read, curves that can be told apart, one scale."""

import math
import re

import pandas as pd
import pytest
from chapters import gather_results, make_chapter
from classifier_files import lists as classifiers
from classifier_files import two_classifiers
from dropout_files import models_by_dropout
from headmask_files import MODEL as SMALL
from headmask_files import HeadmaskFiles, masking_rows
from heads_files import TWO, models_by_heads
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap
from matplotlib.text import Text
from michel_files import MODEL as ABLATED
from michel_files import measured_model
from roles_files import MODEL as EXAMINED
from roles_files import collection
from variant_files import variants
from voita_files import MODEL as PRUNED
from voita_files import pruned_runs

from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.importance import ImportanceSettings, LrpSettings
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.train import GatesSettings
from headcount.findings.chapters import chapters
from headcount.findings.exhibits import declared
from headcount.findings.figures import (
    COLOURS,
    MOST_LINES,
    PAGE,
    SMALLEST,
    run_groups,
    run_styles,
    signed,
    with_minus,
)
from headcount.findings.masked_training import collapse_words, collapsed_in_training
from headcount.findings.speedups import speedup_intervals, warn_of_noise

PAIR = "multi.en-de"
FAILED = (PAIR, "impt-2", 1)
MASKS = {10: [1.0, 1, 0, 0, 0, 0], 30: [0.95, 0, 0, 0.5, 0.5, 0.05]}
_HYPHEN = re.compile(r"(?<![\w.])-\d")
_MACHINE = re.compile(r"dec.enc|enc_self|dec_self|decoder-encoder")


def two_runs(folder) -> HeadmaskFiles:
    """The second keeps masking a head, and with all heads its loss is 1.5, with masked ones 1."""
    made = HeadmaskFiles(folder)
    losses = {(PAIR, "baseline", 1): "", FAILED: 1.5}
    for run, first in losses.items():
        made.runs.append(run)
        made.importance(run, [1.0, 2, 3, 4, 5, 9])
        made.masks(
            run, {10: [1.0, 1, 0, 0, 0, 0], 30: [0.95, 0, 0, 0.5, 0.5, 0.05]} if first else {}
        )
        made.masking(run, masking_rows(30.0, (10.0, 20.0), [12.0, 14.0]))
        made.curves(run, {10: (3.0, first), 20: (2.0, first), 30: (1.0, first)})
    return made


def headmask(folder):
    files = two_runs(folder)
    files.slopes((PAIR, "baseline", 1), {})
    files.masks(FAILED, dict.fromkeys((30, 60, 90), [1, 0, 0, 0, 0.5, 0.5]))
    files.slopes(FAILED, dict.fromkeys((30, 60, 90), [(9, 1, 9)] + [(0.1, 1, 1)] * 5))
    return files.lists(), {"model": SMALL, "importance": ImportanceSettings()}


def general(folder):
    return two_runs(folder).lists(), {}


def michel(folder):
    settings = {"model": ABLATED, "ablation": AblationSettings(), "importance": RerankSettings()}
    return measured_model(folder).listed, settings


def voita_pruning(folder):
    return pruned_runs(folder).listed, {"model": PRUNED, "gates": GatesSettings()}


def voita_roles(folder):
    settings = {"model": EXAMINED, "roles": RolesSettings(), "lrp": LrpSettings()}
    return collection(folder).listed, settings


def heads_per_layer(folder):
    return models_by_heads(folder, TWO), {}


def headmask_regularisation(folder):
    return models_by_dropout(folder), {"model": SMALL, "importance": ImportanceSettings()}


def headmask_variants(folder):
    return variants(folder), {"model": SMALL, "importance": ImportanceSettings()}


def michel_classifiers(folder):
    return classifiers(two_classifiers(folder)), {}


PLANTED = (general, heads_per_layer, headmask, michel, michel_classifiers, voita_pruning)
PLANTED += (voita_roles, headmask_regularisation, headmask_variants)
APART = {heads_per_layer: "general"}
APART |= dict.fromkeys((headmask_regularisation, headmask_variants), "headmask")


def chapter_of(plant) -> str:
    """Each plants files of the chapter of its name, but for what needs runs of its own."""
    return APART.get(plant, plant.__name__)


def figures_of(chapter: str) -> set[str]:
    return {each.name for each in declared(chapter) if each.form == "figure"}


def test_figures_of_every_chapter_are_drawn_here():
    drawing = {chapter.name for chapter in chapters() if figures_of(chapter.name)}
    assert drawing == set(map(chapter_of, PLANTED))


@pytest.fixture(scope="module", params=PLANTED, ids=lambda plant: plant.__name__)
def drawn(request, tmp_path_factory):
    """All figures of a chapter, laid out."""
    chapter = chapter_of(request.param)
    figures = make_chapter(chapter, *request.param(tmp_path_factory.mktemp(chapter)))[1]
    apart = {plant.__name__ for plant, of in APART.items() if chapter == of}
    own = {request.param.__name__} & apart
    assert own <= set(figures) if own else set(figures) == figures_of(chapter) - apart
    for figure in figures.values():
        figure.drawing.draw_without_rendering()
    return {name: figure.drawing for name, figure in figures.items()}


def words(drawing) -> list[Text]:
    found = drawing.findobj(Text)
    return [text for text in found if text.get_visible() and text.get_text().strip()]


@pytest.mark.slow
def test_words_can_be_read_where_a_page_has_them(drawn):
    for name, drawing in drawn.items():
        shrunk = min(1, PAGE / drawing.get_tightbbox().width)
        for text in words(drawing):
            size = text.get_fontsize() * shrunk
            assert size >= SMALLEST - 0.01, f"{name}: {text.get_text()!r} has {size:.1f} pt"


@pytest.mark.slow
def test_words_have_true_minus_signs_and_names_for_people(drawn):
    for name, drawing in drawn.items():
        for found in (text.get_text() for text in words(drawing)):
            assert not _HYPHEN.search(found), f"{name}: {found!r}"
            assert not _MACHINE.search(found), f"{name}: {found!r}"


@pytest.mark.slow
def test_a_panel_has_no_more_curves_than_can_be_told_apart(drawn):
    for name, drawing in drawn.items():
        for panel in drawing.axes:
            plotted = [line for line in panel.lines if line.get_transform() == panel.transData]
            curves = [line for line in plotted if _is_curve(line)]
            assert len(curves) <= MOST_LINES, f"{name}: {len(curves)}"


def _is_curve(line) -> bool:
    """Neither a mark, nor a line between two points, nor a box."""
    points = line.get_xydata().tolist()
    return line.get_linestyle() not in ("None", "") and len(points) > 2 and points[0] != points[-1]


@pytest.mark.slow
def test_scales_of_colours_begin_at_0_or_are_as_long_on_either_side(drawn):
    for name, drawing in drawn.items():
        for image in drawing.findobj(_is_scale):
            low, high = image.norm.vmin, image.norm.vmax
            about_1 = low > 0 and math.isclose(low * high, 1)
            assert low in (0, -high) or about_1, f"{name}: {low} to {high}"


def _is_scale(artist) -> bool:
    """Whether colours of this are a scale of numbers, not a colour for each class."""
    if not isinstance(artist, ScalarMappable) or artist.get_array() is None:
        return False
    return not isinstance(artist.get_cmap(), ListedColormap) or artist.get_cmap().N > 10


@pytest.mark.slow
def test_collapsed_runs_are_marked(tmp_path):
    lists, settings = headmask(tmp_path)
    figures = make_chapter("headmask", lists, settings)[1]
    for name in ("headmask_fig3", "headmask_fig4", "headmask_fig5"):
        (legend,) = figures[name].drawing.legends
        labels = [text.get_text() for text in legend.get_texts()]
        assert labels == ["baseline", "impt-2 (collapsed)"], name
        assert "hurt the model that has them all" in figures[name].text
    for name in ("headmask_heads", "headmask_frequency"):
        titles = [panel.get_title(loc="left") for panel in figures[name].drawing.axes]
        assert f"impt-2, seed 1: collapsed\n{PAIR}" in titles


def test_what_training_shows_of_collapse(tmp_path):
    made = two_runs(tmp_path)
    assert collapsed_in_training(gather_results("general", made.lists(), {})) == {FAILED}
    made.curves(FAILED, {10: (3.0, 2.5), 20: (2.0, 1.5), 30: (1.0, 0.5)})
    assert not collapsed_in_training(gather_results("general", made.lists(), {}))


def test_a_legend_says_which_models_collapsed():
    rows = [("a.x-y", "impt-2", 1), ("a.x-y", "impt-2", 2), ("a.x-y", "impt-6", 1)]
    table = pd.DataFrame([*rows, ("a.x-y", "baseline", 1)], columns=["pair", "run", "seed"])
    found = collapse_words({rows[1], rows[2]}, table)
    assert found == {"impt-2": "seed 2 collapsed", "impt-6": "collapsed"}
    two_pairs = pd.concat([table, table.assign(pair="b.x-y")])
    assert collapse_words({rows[2]}, two_pairs) == {"impt-6": "a.x-y, seed 1 collapsed"}
    styles = run_styles(["baseline", "impt-2"], found)
    assert styles["impt-2"]["label"] == "impt-2 (seed 2 collapsed)"
    assert styles["impt-2"]["markerfacecolor"] == "white"
    assert "markerfacecolor" not in styles["baseline"]


def test_runs_are_parted_where_a_panel_would_have_too_many():
    assert MOST_LINES == 6
    assert run_groups(["a"]) == [["a"]]
    assert run_groups(list("abcdef")) == [list("abcdef")]
    assert run_groups(list("abcdefg")) == [list("abcd"), list("aefg")]


def test_no_two_of_many_runs_look_alike():
    """One has the first colour, and 6 · 4 have others with other lines: any of them may meet."""
    styles = run_styles([f"random-{count}" for count in range(25)], {})
    for other in ("linestyle", "marker"):
        assert len({(style["color"], style[other]) for style in styles.values()}) == 25
    first, again = styles["random-1"], styles["random-7"]
    assert first["color"] == again["color"] == COLOURS[1]
    assert (first["linestyle"], again["linestyle"]) == ("-", "--")


def test_numbers_have_true_signs():
    assert [signed(value) for value in (-2.0, 0, 0.5)] == ["−2", "0", "+0.5"]
    assert with_minus("-1, +1 and -.5, but multi-head a-1") == "−1, +1 and −.5, but multi-head a-1"


def times(whole: list[float], half: list[float]) -> pd.DataFrame:
    """Seconds of a model with all heads and without some, of 10 steps and of 20."""
    rows = [("all", k, s, 10) for k, s in enumerate(whole)]
    rows += [("some", k, s, 20) for k, s in enumerate(half)]
    table = pd.DataFrame(rows, columns=["model", "repeat", "seconds", "steps"])
    return table.assign(batch=1)


def test_speed_ups_of_pairs_of_repeats():
    # Steps take half as long in both repeats, of which the second was slow for both.
    steady = speedup_intervals(times([1, 3], [1, 3]), ["batch"], "model", "all")
    assert steady["model"].tolist() == ["some"]
    assert steady[["speedup_low", "speedup_high"]].values.tolist() == [pytest.approx([2, 2])]
    # Factors 1 and 4: logarithms 0 and 2 ln 2, of mean ln 2 and standard error ln 2; t with one
    # degree of freedom reaches 12.706 of these.
    noisy = speedup_intervals(times([1, 2], [2, 1]), ["batch"], "model", "all")
    low, high = noisy.iloc[0][["speedup_low", "speedup_high"]]
    assert math.log2(low) == pytest.approx(1 - 12.706, abs=0.001)
    assert math.log2(high) == pytest.approx(1 + 12.706, abs=0.001)
    both = pd.concat([steady, noisy]).assign(repeats=2)
    (warning,) = warn_of_noise(both)
    assert warning.startswith("1 of 2 speed-ups are smaller than the noise of their timing")
    assert warn_of_noise(steady.assign(repeats=2)) == ()
    once = speedup_intervals(times([1], [1]), ["batch"], "model", "all")
    assert once.empty and "timed once" in warn_of_noise(once.assign(repeats=1))[0]
