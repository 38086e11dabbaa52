"""HeadMask's figures from hand-made files: what is drawn, its numbers, its words."""

import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import make_chapter
from drawn import lines_beyond
from headmask_files import HEADS, MODEL, HeadmaskFiles, masking_rows

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.importance import ImportanceSettings
from headcount.findings.figures import run_styles, use_style, write_figures
from headcount.findings.headmask.importance import read_importance
from headcount.findings.headmask.importance_figures import distribution, draw_distribution
from headcount.findings.headmask.masking_figures import draw_cumulative_by_n
from headcount.findings.masking import SEEDS, cumulative_points, group_points, read_masking
from headcount.findings.results import read_runs

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

PAIR, REVERSE = "multi.en-de", "multi.de-en"
NAMES = {f"headmask_fig{n}" for n in range(1, 6)} | {"headmask_heads", "headmask_frequency"}
NAMES |= {"headmask_locked_fig"}
ORDERS = ("least important first", "most important first", "random heads")
IMPORTANCE = [1.0, 2, 3, 4, 5, 9]
MASKS = {10: [0.6, 0.4, 0, 0, 0, 0], 30: [0.0, 0.1, 0.2, 0.3, 0.4, 0]}


def add_run(files, run, unmasked, groups=(10.0, 20.0), draws=(12.0, 14.0), values=IMPORTANCE):
    files.runs.append(run)
    files.importance(run, values)
    files.masks(run, {} if run[1] == "baseline" else MASKS)
    files.slopes(run, {})
    files.masking(run, masking_rows(unmasked, groups, list(draws)))


def two_runs(folder):
    made = HeadmaskFiles(folder)
    add_run(made, (PAIR, "baseline", 1), 30.0)
    add_run(made, (PAIR, "random-1", 1), 31.0, values=[2.0] * 5 + [8.0])
    return made


@pytest.fixture
def files(tmp_path):
    """Files of two runs, for a test that changes them."""
    return two_runs(tmp_path)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """All figures of files that no test changes."""
    return figures(two_runs(tmp_path_factory.mktemp("runs")))


def made(files):
    settings = {"model": MODEL, "importance": ImportanceSettings()}
    return make_chapter("headmask", files.lists(), settings)[1]


def figures(files):
    found = made(files)
    assert set(found) == NAMES
    return {name.removeprefix("headmask_"): figure for name, figure in found.items()}


def points(figure, run, order):
    return places(figure.data, run, order)


def places(table, run, order):
    rows = table[(table["run"] == run) & (table["order"] == order)]
    return rows[["heads_masked", "bleu", "low", "high"]].values.tolist()


def legend(drawing):
    return [text.get_text() for text in drawing.legends[0].get_texts() if text.get_text()]


def test_figure_1_of_one_seed(found):
    figure = found["fig1"]
    assert set(figure.data["run"]) == {"baseline"}
    # Deltas − 20 and − 10; their intervals reach 1 below and 2 above.
    assert points(figure, "baseline", "group") == [[3, 10, 9, 12], [3, 20, 19, 22]]
    # Draws 12, 13, 14, 15 of the two random groups.
    assert points(figure, "baseline", "random_group") == [[3, 13.5, 12, 15]]
    (axes,) = figure.drawing.axes
    assert [bar.get_height() for bar in axes.patches[:2]] == [10, 20]
    assert axes.get_xlabel() == "group of 3 heads (1: most important)"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2"]
    assert axes.get_title(loc="left") == f"{PAIR}\ntest"
    assert set(legend(figure.drawing)) == {
        "this group masked",
        "no head masked",
        "as many random heads",
    }
    spreads = ["bootstrap, 95 %, of the change from no mask", "range of draws"]
    assert sorted(set(figure.data["spread"])) == spreads
    told = "; of random heads: ".join(spreads)
    assert f"{told} and of their groups (and seeds)." in figure.text
    assert "Scored on test (7 sentences), by beam 3, length penalty 0.6." in figure.text


def test_captions_say_which_runs_are_drawn_and_what_bars_are_not(found):
    for name, figure in found.items():
        of_base = name in ("fig1", "fig2")
        words = f"Data: {PAIR}; seed 1" + ("." if of_base else "; N = 1 of 6 heads.")
        assert words in figure.text  # N is random-1's
    for name in ("fig4", "fig5"):
        assert "an interval of the difference between two models" in found[name].text
    assert tell_what_is_covered(found) == ["fig1", "fig2", "fig4", "fig5"]


def test_several_seeds_are_a_mean_with_their_deviation(files):
    add_run(files, (PAIR, "baseline", 2), 34.0, groups=(14.0, 20.0), draws=(16.0, 10.0))
    table = group_points(read_masking(files.lists()["masking"]))
    (first, second) = places(table, "baseline", "group")
    # 10 and 14: mean 12, variance (4 + 4) / 1.
    assert first == pytest.approx([3, 12, 12 - 8**0.5, 12 + 8**0.5])
    assert second == [3, 20, 20, 20]
    assert places(table, "baseline", "none") == [[0, 32, 32 - 8**0.5, 32 + 8**0.5]]
    # Means of a seed's draws 13.5 and 13.5; from 10 to 17 over all of them.
    assert places(table, "baseline", "random_group") == [[3, 13.5, 10, 17]]
    of_groups = table[(table["run"] == "baseline") & (table["order"] == "group")]
    assert set(of_groups["spread"]) == {SEEDS}


@pytest.mark.slow
def test_captions_name_the_seeds(files):
    add_run(files, (PAIR, "baseline", 2), 34.0)
    figure = figures(files)["fig1"]
    assert "standard deviation over seeds" in figure.text and "seeds 1, 2" in figure.text
    assert tell_what_is_covered({"fig1": figure}) == []


def test_figure_2_runs_from_no_head_to_all(found):
    figure = found["fig2"]
    assert points(figure, "baseline", "descending") == [
        *([0, 30, 30, 30], [3, 10, 9, 12], [6, 0.5, -0.5, 2.5])
    ]
    assert points(figure, "baseline", "ascending")[1] == [3, 20, 19, 22]
    assert points(figure, "baseline", "random_cumulative")[1] == [3, 13, 12, 14]
    (axes,) = figure.drawing.axes
    assert axes.get_xlim() == (0, 6) and axes.get_xlabel() == "heads masked (of 6)"
    words = {"least important first", "most important first", "no head masked"}
    assert set(legend(figure.drawing)) == words | {"random heads", "range of their draws"}


@pytest.mark.slow
def test_figures_without_random_draws(tmp_path):
    files = HeadmaskFiles(tmp_path)
    add_run(files, (PAIR, "baseline", 1), 30.0, draws=())
    found = figures(files)
    assert "random" not in set(found["fig1"].data["order"])
    assert set(legend(found["fig2"].drawing)) == {
        *("least important first", "most important first", "no head masked")
    }
    titles = [axes.get_title(loc="left") for axes in found["fig5"].drawing.axes]
    assert titles == [f"{PAIR}, test\n{order}" for order in ORDERS[:2]]
    assert "random heads:" not in found["fig1"].text
    ticks = [tick.get_text() for tick in found["fig4"].drawing.axes[0].get_xticklabels()]
    assert ticks == ["none", "1", "2"]


def test_figure_3_ranks_every_head(found):
    figure = found["fig3"]
    rows = figure.data[figure.data["run"] == "random-1"]
    assert rows["importance"].tolist() == [2, 2, 2, 2, 2, 8]
    assert rows["rank"].tolist() == [2, 3, 4, 5, 6, 1]  # equal ones in order
    assert rows["relative"].tolist() == pytest.approx([2 / 3] * 5 + [8 / 3])
    left, right = figure.drawing.axes
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["baseline", "random-1"]
    assert left.get_xlabel() == "importance (nats per sentence)"
    assert left.get_xscale() == right.get_yscale() == "log"
    ranked = right.get_lines()[0].get_ydata()
    assert list(ranked) == [9 / 4, 5 / 4, 1, 3 / 4, 2 / 4, 1 / 4]  # the mean head has 4


def test_importances_with_a_sign_get_a_plain_axis(files):
    files.importance((PAIR, "random-1", 1), [-2.0, 2, 2, 2, 2, 8])
    rows = distribution(read_importance(files.lists()["importance"]))
    use_style()
    styles = run_styles(["baseline", "random-1"], {})
    left, right = draw_distribution(rows, styles, "nats").axes
    assert left.get_xscale() == right.get_yscale() == "linear"
    # Relative to the mean size, 18 / 6.
    assert rows.loc[rows["run"] == "random-1", "relative"].iloc[0] == pytest.approx(-2 / 3)


def test_figure_4_has_every_run_between_its_ends(found):
    figure = found["fig4"]
    (axes,) = figure.drawing.axes
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks == ["none", "1", "2", "random"]
    assert legend(figure.drawing) == ["baseline", "random-1"]
    assert points(figure, "random-1", "none") == [[0, 31, 31, 31]]
    assert "Groups are those of each model's own ranking" in figure.text
    assert "N = 1 of 6 heads" in figure.text


def test_figure_5_has_a_row_for_each_n_and_a_panel_for_each_order(files):
    add_run(files, (PAIR, "impt-3", 1), 28.0)
    add_run(files, (PAIR, "impt-3-p0.5", 1), 60.0)  # far above the first row's
    table = cumulative_points(read_masking(files.lists()["masking"]))
    runs = ["baseline", "random-1", "impt-3", "impt-3-p0.5"]
    use_style()
    settings = read_runs(files.lists()["trained_runs"])
    drawing = draw_cumulative_by_n(table, settings, run_styles(runs, {"impt-3": "collapsed"}))
    titles = [axes.get_title(loc="left") for axes in drawing.axes]
    assert titles == [f"{PAIR}, test\nN = {n}, {order}" for n in (1, 3) for order in ORDERS]
    # An order a panel: baseline and random-1; baseline and the two of N = 3.
    assert [len(axes.get_lines()) for axes in drawing.axes] == [2, 2, 2, 3, 3, 3]
    assert legend(drawing) == ["baseline", "random-1", "impt-3 (collapsed)", "impt-3-p0.5"]
    faces = [line.get_markerfacecolor() for line in drawing.axes[3].get_lines()]
    assert [face == "white" for face in faces] == [False, True, False]
    assert lines_beyond(drawing) == []
    assert {axes.get_ylim()[0] for axes in drawing.axes} == {0}


@pytest.mark.slow
def test_two_n_are_not_told_to_be_one(files):
    add_run(files, (PAIR, "impt-3", 1), 28.0)
    assert "one N only" not in figures(files)["fig5"].text


def test_figures_of_means_over_unlike_seeds_name_the_runs(files, found):
    """A second seed of the baseline alone: curves of random-1 are of one."""
    add_run(files, (PAIR, "baseline", 2), 40.0)
    several = figures(files)
    told = f"{PAIR}: means over fewer seeds than 2: random-1 (1). How they lie beside others"
    for name in ("fig3", "fig4", "fig5"):
        assert found[name].warnings == ()
        (warning,) = several[name].warnings
        assert warning.startswith(told)


def test_one_n_is_drawn_and_told(found):
    figure = found["fig5"]
    titles = [axes.get_title(loc="left") for axes in figure.drawing.axes]
    assert titles == [f"{PAIR}, test\nN = 1, {order}" for order in ORDERS]
    assert "This experiment has one N only; the paper compares two." in figure.text


def test_layers_and_heads_count_from_zero(found):
    figure = found["heads"]
    baseline, random, bar = figure.drawing.axes
    assert [tick.get_text() for tick in baseline.get_yticklabels()] == [
        *("enc 0", "enc 1", "dec 0", "enc–dec 0")
    ]
    assert [tick.get_text() for tick in baseline.get_xticklabels()] == ["0", "1"]
    cells = baseline.get_images()[0].get_array()
    # Mean 4; the second encoder layer and the decoder have one head.
    assert cells.filled(-1).tolist() == [[0.25, 0.5], [0.75, -1], [1, -1], [1.25, 2.25]]
    assert random.get_title(loc="left") == f"random-1, seed 1\n{PAIR}"
    assert bar.get_ylabel() == "importance ÷ mean importance"
    assert sum(map(sum, HEADS.values())) == len(figure.data) / 2


def test_frequency_by_update(found):
    figure = found["frequency"]
    axes = figure.drawing.axes[0]
    mesh = axes.collections[0]
    assert mesh.get_array().tolist()[:2] == [[0.6, 0.0], [0.4, 0.1]]
    edges = mesh.get_coordinates()[0, :, 0]
    assert edges.tolist() == [0, 10, 30]  # as wide as the intervals
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["enc", "dec", "enc–dec"]
    assert figure.data["updates"].unique().tolist() == [10, 20]


@pytest.mark.slow
def test_the_baseline_alone(tmp_path):
    files = HeadmaskFiles(tmp_path)
    add_run(files, (PAIR, "baseline", 1), 30.0)
    found = figures(files)
    assert "No run of this experiment masks heads" in found["frequency"].drawing.texts[0].get_text()
    assert list(found["frequency"].data.columns[:4]) == ["pair", "run", "seed", "step"]
    assert "No run of this experiment masks heads in training." in found["fig5"].text
    titles = [axes.get_title(loc="left") for axes in found["fig5"].drawing.axes]
    assert titles == [f"{PAIR}, test\n{order}" for order in ORDERS]


@pytest.mark.slow
def test_without_a_baseline_figures_1_and_2_say_so(tmp_path):
    files = HeadmaskFiles(tmp_path)
    add_run(files, (PAIR, "random-1", 1), 30.0)
    found = figures(files)
    for name in ("fig1", "fig2"):
        assert "no run named baseline" in found[name].drawing.texts[0].get_text()
        assert found[name].data.empty


@pytest.mark.slow
def test_a_panel_for_each_pair(files):
    add_run(files, (REVERSE, "baseline", 1), 25.0)
    add_run(files, (REVERSE, "random-1", 1), 26.0)
    found = figures(files)
    titles = [axes.get_title(loc="left") for axes in found["fig2"].drawing.axes]
    assert titles == [f"{PAIR}\ntest", f"{REVERSE}\ntest"]
    assert len(found["fig3"].drawing.axes) == 4
    assert len(found["frequency"].drawing.axes) == 3  # two models and the colour bar


def test_only_the_models_own_ranking_is_drawn(files):
    other = [("baseline", *row[1:]) for row in masking_rows(31.0, (1.0, 2.0), [])]
    own = masking_rows(31.0, (10.0, 20.0), [12.0])
    files.masking((PAIR, "random-1", 1), own + other)
    table = group_points(read_masking(files.lists()["masking"]))
    assert places(table, "random-1", "group") == [*([3, 10, 9, 12], [3, 20, 19, 22])]


def test_a_file_without_an_unmasked_score(files):
    rows = [row for row in masking_rows(31.0, (10.0, 20.0), []) if row[1] != "none"]
    files.masking((PAIR, "random-1", 1), rows)
    with pytest.raises(UserError, match="random-1/seed1/headmask.csv: expected a row of ranking"):
        figures(files)


@pytest.mark.slow
def test_figures_are_written_with_their_numbers(files, tmp_path):
    out = tmp_path / "figures"
    origin = {"command": ["x"]}
    write_figures(made(files), out, origin)
    for name in NAMES:
        found = {path.suffix for path in out.glob(f"{name}.*")}
        assert found == {".csv", ".pdf", ".svg", ".png", ".json"}
        about = read_json(out / f"{name}.json")
        assert about["provenance"] == origin
        assert "2 encoder and 1 decoder layers" in " ".join(about["notes"])
    tidy = pd.read_csv(out / "headmask_fig4.csv")
    assert set(tidy["run"]) == {"baseline", "random-1"}
