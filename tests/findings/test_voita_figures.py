"""Numbers behind the figures of pruning; every expected one is worked out beside it."""

import math

import numpy as np
import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import gather_results, make_chapter
from voita_files import MODEL, PAIR, VoitaFiles, pruned_runs, translated

from headcount.base.settings.train import GatesSettings
from headcount.findings.voita_pruning.bleu_curves import encoder_points, method_points
from headcount.findings.voita_pruning.comparison import untuned
from headcount.findings.voita_pruning.gate_figures import distributions, trajectories
from headcount.findings.voita_pruning.heads_left import draw_layers, kind_points, layer_points
from headcount.findings.voita_pruning.measured import all_scores, pruned_models
from headcount.findings.voita_pruning.records import records
from headcount.findings.voita_pruning.removal_speed import speed_with_bleu, timed

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

SETTINGS = {"model": MODEL, "gates": GatesSettings()}
NAMES = ["fig6", "fig7", "fig9", "fig10", "gates", "methods", "speed"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return pruned_runs(tmp_path_factory.mktemp("runs")).listed


@pytest.fixture(scope="module")
def data(files):
    """The numbers of each figure, by themselves: drawing takes seconds."""
    results = gather_results("voita_pruning", files, SETTINGS)
    models = pruned_models(results)
    return {
        "fig7": encoder_points(records(results)),
        "fig9": kind_points(models, MODEL.grid),
        "fig10": layer_points(models, MODEL.grid),
        "methods": method_points(records(results), untuned(results)),
        "gates": trajectories(files["gates"], models),
        "speed": speed_with_bleu(timed(results), all_scores(results)),
    }


def make_figures(files):
    return make_chapter("voita_pruning", files, SETTINGS)[1]


@pytest.mark.slow
def test_figures_have_these_numbers(files, data):
    found = make_figures(files)
    assert list(found) == [f"voita_{name}" for name in NAMES]
    for name in NAMES[1:]:  # the first is of the settings alone
        pd.testing.assert_frame_equal(found[f"voita_{name}"].data, data[name])
    assert tell_what_is_covered(found) == []  # two seeds: all bars are over seeds
    assert "how far trainings differ" in found["voita_fig7"].text
    assert "Our BLEU is sacreBLEU's, the paper's" in found["voita_fig7"].text
    assert "1,300 from scratch" in found["voita_methods"].text


def ours(points):
    return points[points["source"] == "ours"]


def test_figure_6_has_the_printed_masses_at_the_papers_temperature():
    table = distributions(GatesSettings(temperature=0.25, stretch_low=-0.2, stretch_high=1.3))
    paper, own = table[table["temperature"] == 0.5], table[table["temperature"] == 0.25]
    masses = {
        part: rows.set_index(["log_alpha", "gate"])["value"]
        for part, rows in paper.groupby("part")
        if part in ("mass", "printed")
    }
    pd.testing.assert_series_equal(
        masses["mass"].round(2), masses["printed"], check_names=False, check_like=True
    )
    # P(0) at log α = 0: sigmoid(τ ln(0.2 / 1.3)) = 1 / (1 + 6.5^0.25); P(1): 1 / (1 + 4^0.25).
    found = own[(own["part"] == "mass") & (own["log_alpha"] == 0)]["value"].to_list()
    assert found == pytest.approx([1 / (1 + 6.5**0.25), 1 / (1 + math.sqrt(2))])


def test_density_and_masses_sum_to_one():
    table = distributions(GatesSettings())
    for _, rows in table.groupby(["temperature", "log_alpha"]):
        hard = rows[rows["part"] == "hard"]
        area = np.trapezoid(hard["value"], hard["gate"])
        # The two ends that the grid leaves out, 1/400 each, are below 0.5 % of the whole.
        assert area + rows.loc[rows["part"] == "mass", "value"].sum() == pytest.approx(1, abs=0.01)


def test_figure_7_has_means_over_seeds_beside_the_paper(data):
    found = ours(data["fig7"]).to_dict("records")
    assert [row["run"] for row in found] == ["gates-enc_self-l0", "gates-enc_self-l0.2"]
    assert [row["heads_left"] for row in found] == [3, 1]
    assert [(row["bleu"], row["low"], row["spread"], row["seeds"]) for row in found] == [
        (100, 100, "standard deviation over seeds", 2)
    ] * 2
    paper = data["fig7"][data["fig7"]["source"] == "paper"]
    # The text: 0.15 below the full model with 10 heads, 0.25 with 4.
    at = paper.set_index(["pair", "heads_left"])["bleu"]
    assert at["wmt.en-ru", 48] - at["wmt.en-ru", 10] == pytest.approx(0.15)
    full, four = at["opensubtitles.en-ru", 48], at["opensubtitles.en-ru", 4]
    assert full - four == pytest.approx(0.25)


@pytest.fixture
def one_seed(tmp_path):
    """A control and a run without encoder heads."""
    return lone_sweep(tmp_path, "test")


def lone_sweep(folder, *tests):
    made = VoitaFiles(folder, MODEL)
    for test in tests:
        made.reference(PAIR, test, translated(0)[1])
    made.scores("train", (PAIR, "baseline", 3), dict.fromkeys(tests, translated(2)))
    made.curve("train", (PAIR, "baseline", 3), 40)
    for run, kept, wrong in (("gates-enc_self-l0", 1, 1), ("gates-enc_self-l0.1", 0, 200)):
        made.scores("prune", (PAIR, run, 3), dict.fromkeys(tests, translated(wrong)))
        made.heads((PAIR, run, 3), [kept] * 3 + [1] * 3, [0.5] * 6)
        made.curve("prune", (PAIR, run, 3), 10)
        made.gates((PAIR, run, 3), {0: [0.5] * 6, 5: [1.0 - kept] * 6})
    made.speed(PAIR, 3, ["baseline,6,10,40,decode,1,1,5,9,1"])
    return made


def test_with_one_seed_the_interval_lies_around_the_control(one_seed):
    results = gather_results("voita_pruning", one_seed.listed, SETTINGS)
    row = ours(encoder_points(records(results))).to_dict("records")[1]
    # Nothing is right: the difference is −BLEU of the control in each resample, 99.5 in the mean.
    assert row["bleu"] == 0 and row["spread"] == "bootstrap, 95 %"
    assert row["low"] == pytest.approx(0, abs=2) and row["high"] == pytest.approx(0, abs=2)


@pytest.mark.slow
def test_without_a_run_on_all_kinds_figure_9_is_the_papers(one_seed):
    found = make_figures(one_seed.listed)
    assert "no gates run on all kinds" in found["voita_fig9"].text
    assert tell_what_is_covered(found) == ["voita_fig7", "voita_methods"]  # one seed
    assert set(found["voita_fig9"].data["source"]) == {"paper"}


@pytest.mark.slow
def test_methods_are_drawn_on_the_first_test_set(one_seed, tmp_path):
    two = lone_sweep(tmp_path / "two", "news", "web")
    for made, tests in ((one_seed, {"test"}), (two, {"news", "web"})):
        found = make_figures(made.listed)["voita_methods"]
        (panel,) = found.drawing.axes
        assert panel.get_title(loc="left").startswith(f"{PAIR}, {min(tests)}")
        assert set(found.data["test_set"]) == tests
        assert ("Other test sets are in the numbers" in found.text) == (len(tests) > 1)


def test_figures_9_and_10_are_the_papers_without_a_run_on_all_kinds(one_seed):
    models = pruned_models(gather_results("voita_pruning", one_seed.listed, SETTINGS))
    for points in (kind_points(models, MODEL.grid), layer_points(models, MODEL.grid)):
        assert set(points["source"]) == {"paper"} and (points["heads_left"] != "").all()


def test_figure_9_counts_heads_of_each_kind(data):
    found = ours(data["fig9"])
    of_run = found[(found["run"] == "gates-all-l0.1") & (found["seed"] == 2)]
    assert of_run[["kind", "pruned", "heads", "heads_left"]].values.tolist() == [
        ["enc_self", 2, 3, 1],
        ["dec_self", 2, 1, 1],
        ["dec_enc", 2, 2, 2],
    ]
    # Runs on the encoder alone and from other starts belong to other figures.
    assert set(found["run"]) == {"gates-all-l0", "gates-all-l0.1", "gates-all-l0.5"}
    paper = data["fig9"][data["fig9"]["source"] == "paper"]
    left = paper.groupby(["pair", "pruned"])["heads_left"].sum()
    assert (left + left.index.get_level_values("pruned") == 144).all()


def test_figure_10_has_layers_by_themselves_in_a_shallow_decoder(data):
    found = ours(data["fig10"])
    of_run = found[(found["run"] == "gates-all-l0.5") & (found["seed"] == 1)]
    assert of_run[["kind", "layers", "pruned", "heads_left"]].values.tolist() == [
        ["dec_self", "0", 1, 0],
        ["dec_enc", "0", 2, 0],
    ]
    drawn = draw_layers(data["fig10"]).axes
    words = {text.get_text() for axes in drawn for text in axes.get_legend().get_texts()}
    assert words >= {"layer 0", "layers 0–1", "layers 4–5"}
    paper = data["fig10"][data["fig10"]["source"] == "paper"]
    # Figure 9's last model on WMT: 9 and 12 heads left of 48.
    last = paper[paper["point"] == 118].groupby("kind")[["heads_left", "pruned"]].agg("max")
    assert last["pruned"].to_dict() == {"dec_self": 39, "dec_enc": 36}


def test_methods_lose_against_their_own_control(data):
    rows = data["methods"]
    tuned = rows[(rows["panel"] == "tuned") & (rows["lambda"] == 0.1)].set_index("contender")
    # Wrong lines of 200, seeds 1 and 2: gates 1, 3; scratch 5, 7; ranked 3, 3; drawn 9, 9.
    deltas = {"gates": -1, "scratch": -3, "ranked": -1.5, "drawn": -4.5}
    assert tuned["delta"].to_dict() == pytest.approx(deltas)
    assert tuned.loc["gates", "low"] == pytest.approx(-1 - math.sqrt(0.5))
    untuned = rows[rows["panel"] == "untuned"].set_index("contender")
    assert untuned["delta"].to_dict() == {"gates": -3, "ranked": -1, "drawn": -5}
    drawn = untuned.loc["drawn", ["low", "high", "spread"]].to_list()
    assert drawn == [-6, -4, "range of draws"]
    start = rows[(rows["panel"] == "start") & (rows["lambda"] == 0.1)].set_index("contender")
    # From the baseline −0.5 and −1.5; from random-1 one wrong line more than its control.
    assert start["delta"].to_dict() == pytest.approx({"baseline": -1, "random-1": -0.5})
    assert start["heads_left"].to_dict() == {"baseline": 4, "random-1": 5}


def test_gates_over_training_are_those_of_the_scope(data):
    rows = data["gates"]
    found = rows[(rows["run"] == "gates-enc_self-l0.2") & (rows["seed"] == 1)]
    assert set(found["kind"]) == {"enc_self"} and found["step"].unique().tolist() == [0, 10]
    # 1 − P(0) at the last validation.
    last = found[found["step"] == 10]["p_open"].to_list()
    assert last == pytest.approx([0.05, 0.95, 0.15])


def test_speed_has_the_bleu_of_each_model(data):
    rows = data["speed"]
    found = rows[(rows["seed"] == 2) & (rows["phase"] == "decode") & (rows["batch_size"] == 1)]
    assert found[["run", "bleu", "heads_left", "file_bytes"]].values.tolist() == [
        ["baseline", 99.0, 6, 4000],
        ["gates-all-l0.1", 98.5, 4, 3600],
    ]
