"""Figures of roles; every expected number is worked out beside it."""

import math

import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import gather_results, make_chapter
from roles_files import (
    BASE,
    EMPTY,
    MODEL,
    ONLY_DECODER,
    PAIR,
    SENTENCE,
    UP,
    RolesCollection,
    collection,
)

from headcount.base.settings.importance import LrpSettings
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.runs import PrunedSettings, label
from headcount.findings.results import Results, read_runs
from headcount.findings.voita_roles import (
    dependency_figures,
    dependency_scores,
    maps,
    retained,
)
from headcount.findings.voita_roles.labels import label_count, read_roles
from headcount.findings.voita_roles.measured import all_roles
from headcount.findings.voita_roles.rare_maps import choose_maps, draw_maps, map_weights

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

SETTINGS = {"model": MODEL, "roles": RolesSettings(), "lrp": LrpSettings()}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> RolesCollection:
    return collection(tmp_path_factory.mktemp("roles"))


@pytest.fixture(scope="module")
def results(made) -> Results:
    return gather_results("voita_roles", made.listed, SETTINGS)


@pytest.fixture(scope="module")
def data(results):
    """The numbers of each figure, by themselves: drawing takes seconds."""
    roles = all_roles(results)
    base = roles["run"] == "baseline"
    return {
        "fig1": maps.map_points(roles[base], ["opensubtitles.en-ru"]),
        "fig2": maps.map_points(roles[~base], ["wmt.en-de", "wmt.en-fr"]),
        "fig3": dependency_figures.dependent_positions(
            results.files("trees"), RolesSettings().relations
        ),
        "fig4": dependency_figures.score_points(dependency_scores.best_heads(results)),
        "fig5": map_weights(
            choose_maps(results.files("sentence_maps"), results.files("attention"))
        ),
        "fig8": retained.retained_of(results),
    }


@pytest.mark.slow
def test_figures_have_these_numbers(made, data):
    _, found = make_chapter("voita_roles", made.listed, SETTINGS)
    assert list(found) == [f"voita_{name}" for name in data]
    for name, expected in data.items():
        pd.testing.assert_frame_equal(found[f"voita_{name}"].data, expected)
    assert tell_what_is_covered(found) == ["voita_fig4"]


def test_figures_1_and_2_part_the_baseline_from_the_others(data):
    first, second = data["fig1"], data["fig2"]
    assert set(first["run"]) == {"baseline", ""} and set(second["run"]) == {"random-1", ""}
    assert set(first.query("source == 'paper'")["pair"]) == {"opensubtitles.en-ru"}
    head = first.query("layer == 0 and rank == 1 and source == 'ours'").iloc[0]
    assert (head["relevance"], head["function"], head["head"]) == (0.7, "rare", 1)
    # The paper's shares of a layer sum to 1, within what can be read off.
    paper = second.query("source == 'paper'").groupby(["pair", "layer"])["relevance"].sum()
    assert (abs(paper.astype(float) - 1) < 0.02).all()
    drawn = maps.draw_maps(first, ["relevance"], ()).axes[0]  # the first layer at the bottom
    assert [tick.get_text() for tick in drawn.get_yticklabels()] == ["1", "0"]


def test_figure_2_has_no_plainly_trained_model(tmp_path):
    """One with other heads is such a model; the table has it."""
    made = collection(tmp_path)
    run = (PAIR, "baseline-h2", 1)
    names = ("confidence", "entropy", "rare_rarest", "rare_two_rarest", "rare_two_rarest_chance")
    made.attention(run, dict.fromkeys(names, [0.1] * 6))
    made.values("relevance", run, {"relevance": [0.3, 0.7, 0.6, 0.4, 1.0, 1.0]})
    settings = SETTINGS | {"model": ExperimentModel(preset="tiny")}
    found = gather_results("voita_roles", made.listed, settings)
    assert set(maps.fig2(found).data["run"]) == {"random-1", ""}
    assert {"baseline", "baseline-h2"} < set(all_roles(found)["run"])


def test_functions_have_classes():
    names = ["", "-1", "+12", "v→s, o→v", "rare", "-1, v→s"]
    found = [maps.function_class(name) for name in names]
    assert found == ["none", "positional", "positional", "syntactic", "rare", "several"]


def test_figure_3_has_shares_of_each_relations_arcs(data):
    ours = data["fig3"].query("source == 'ours'")
    rows = {(row["relation"], row["offset"]): row["share"] for row in ours.to_dict("records")}
    assert rows == {("nsubj", -1): 0.75, ("nsubj", 2): 0.25, ("obj", 1): 1}  # case is not drawn


def test_figure_3_draws_relations_that_the_paper_has_not(results):
    trees = results.files("trees")
    relations = ["nsubj:pass", "case", "obj"]
    points = dependency_figures.dependent_positions(trees, relations)
    assert set(points["relation"]) == {"case", "obj"}
    figure = dependency_figures.draw_positions(points, relations)
    names = [panel.get_title(loc="left") for panel in figure.axes]
    assert names == ["nsubj:pass", "case", "dobj (obj)"]
    # 9 arcs of case, all at −1; obj: ours at 1, the paper's at 1 to 5.
    assert [len(panel.patches) for panel in figure.axes] == [0, 1, 6]
    assert figure.axes[1].patches[0].get_height() == 1
    none = dependency_figures.dependent_positions([], ["obl"])
    words = dependency_figures.draw_positions(none, ["obl"]).texts[0].get_text()
    assert none.empty and words == "Neither trees here nor the paper have obl."


def test_figure_3_tells_which_trees_it_counts(results):
    caption = dependency_figures.fig3(results).text
    assert "Ours are counted over every sentence of each treebank" in caption
    assert "first 1000 sentences" not in caption and "Data: toy.en-xx" in caption


def test_figure_4_is_of_the_first_treebank(data):
    ours = data["fig4"].query("source == 'ours' and run == 'baseline'")
    assert set(ours["treebank"]) == {"t.first"} and len(ours) == 2
    paper = data["fig4"].query("source == 'paper' and pair == 'wmt.en-de'")
    assert paper["baseline"].tolist() == [0.35, 0.35, 0.41, 0.41, 0.72, 0.72, 0.46, 0.46]


@pytest.mark.parametrize("seeds", [2, 4])
def test_figure_4_has_a_colour_for_every_bar(seeds):
    """Of 2 runs; of 8 models, more than there are colours, the runs: means of 0.2, 0.4, 0.6, 0.8.

    With 2 seeds each model has its own bar, and its Wilson interval.
    """
    rows = [
        (PAIR, run, "t", "obj", UP, at, at - 0.1, at + 0.1, 0.3, "ours", seed)
        for run in ("baseline", "impt-1")
        for seed, at in zip(range(1, seeds + 1), (0.2, 0.4, 0.6, 0.8), strict=False)
    ]
    points = pd.DataFrame(rows, columns=[*dependency_figures.SCORE_COLUMNS, "seed"])
    failed = {(PAIR, "impt-1", seed) for seed in range(1, seeds + 1)}
    failed |= {(PAIR, "baseline", 1)}  # one of its models is none of its run
    (panel,) = dependency_figures.draw_scores(points, failed).axes
    bars = [round(bar.get_height(), 6) for bar in panel.patches]
    names = [text.get_text() for text in panel.get_legend().get_texts()]
    if seeds == 4:
        assert bars == [0.5, 0.5]
        failed = (f"{PAIR}, baseline (seed 1 collapsed)", f"{PAIR}, impt-1 (collapsed)")
        assert set(names) == {"positional baseline", *failed}
        assert [bar.get_fill() for bar in panel.patches] == [True, False]
        ends = panel.collections[0].get_segments()[0][:, 1].tolist()
        assert ends == pytest.approx([0.2, 0.8])  # of all seeds
    else:
        assert bars == [0.2, 0.4, 0.2, 0.4] and len(names) == 5


def test_figure_4_of_one_seed_has_every_model():
    """Eight runs are more than colours, but there is nothing to take a mean of."""
    rows = [(PAIR, f"impt-{n}", "t", "obj", UP, 0.5, 0.4, 0.6, 0.3, "ours", 1) for n in range(1, 9)]
    points = pd.DataFrame(rows, columns=[*dependency_figures.SCORE_COLUMNS, "seed"])
    (panel,) = dependency_figures.draw_scores(points, set()).axes
    assert len({bar.get_facecolor() for bar in panel.patches}) == 8
    assert panel.collections[0].get_segments()[0][:, 1].tolist() == pytest.approx([0.4, 0.6])
    assert panel.get_legend().get_texts()[1].get_text() == f"{PAIR}, impt-1, seed 1"


def test_figure_5_has_the_weights_of_the_baselines_candidate(data):
    rows = data["fig5"]
    cells = rows[["run", "head", "query", "key", "weight"]].to_numpy().tolist()
    head = ["baseline", "enc_self.0.1"]
    assert cells == [
        [*head, "a", "a", 1.0], [*head, "a", "b", 0.0],
        [*head, "b", "a", 0.5], [*head, "b", "b", 0.5],
    ]  # fmt: skip


def test_figure_5_takes_turns_between_pairs(tmp_path):
    made = RolesCollection(tmp_path)
    for run, count in (((PAIR, "random-1", 1), 3), (BASE, 3), (("o.en-yy", "random-1", 2), 2)):
        made.sentences(run, [SENTENCE] * count)
        made.attention(run, {"rare_two_rarest": [0.1, 0.2, 0.9, 0.9, math.nan, math.nan]})
    chosen = choose_maps(made.listed["sentence_maps"], made.listed["attention"])
    assert [(each.run[:2], each.sentence) for each in chosen] == [
        ((PAIR, "baseline"), 1), (("o.en-yy", "random-1"), 1), ((PAIR, "baseline"), 2),
    ]  # fmt: skip
    # A model of which nothing was measured on rare words has no candidate.
    assert choose_maps(made.listed["sentence_maps"], []) == []
    assert map_weights([]).empty and draw_maps([]).texts[0].get_text().startswith("No sentence")


def test_figure_8_counts_functions_anew_in_pruned_models(data):
    rows = data["fig8"]
    ours = rows[(rows["source"] == "ours") & (rows["heads"] != 0)]
    found = ours.groupby("run")[["heads_left", "function", "heads"]].apply(
        lambda own: own.to_numpy().tolist()
    )
    assert found["baseline"] == [
        [4, "positional and syntactic", 1], [4, "syntactic", 1], [4, "rare", 1], [4, "unknown", 1],
    ]  # fmt: skip
    # There it points at +1, and 50 is 5 points above the baseline.
    assert found["gates-enc_self-l0.2"] == [[1, "positional", 1]]
    assert retained.function_of("v→s, rare") == "rare and syntactic"


def test_figure_8_has_models_without_an_encoder_head(data):
    rows = data["fig8"]
    empty = rows[rows["run"] == EMPTY[1]]
    assert empty["function"].tolist() == list(retained.FUNCTIONS)
    assert set(empty["heads_left"]) == set(empty["heads"]) == {0}
    figure = retained.draw_retained(rows)
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    panel = figure.axes[titles.index(f"{PAIR}, from baseline\ngates on encoder heads")]
    # The unpruned model, λ 0.2 and λ 0.9, which is a place without a bar.
    assert [label.get_text() for label in panel.get_xticklabels()] == ["4", "1", "0"]
    assert {bar.get_height() for bar in panel.patches if round(bar.get_x() + 0.4) == 2} == {0}


def test_figure_8_is_drawn_if_no_pruned_model_has_an_encoder_head(tmp_path):
    made = RolesCollection(tmp_path)
    made.attention(EMPTY, ONLY_DECODER, pruned=True)
    made.positions(EMPTY, [], pruned=True)
    made.syntax(EMPTY, [], pruned=True)
    pruned = (made.listed["pruned_attention"], made.listed["pruned_positions"])
    heads = read_roles(*pruned, made.listed["pruned_syntax"], RolesSettings())
    assert heads.empty
    ours = retained.retained_roles(heads, [EMPTY], read_runs(made.listed["pruned_runs"])).query(
        "source == 'ours'"
    )
    assert len(ours) == len(retained.FUNCTIONS) and set(ours["heads_left"]) == {0}


def test_figure_8_shows_the_baseline_before_gates_from_random_weights():
    """Nothing was pruned there; the baseline is what was trained for as many updates."""
    drawn = PrunedSettings.model_validate("gates-all-l0.3-from-none")
    runs = [BASE, (BASE[0], label(drawn), BASE[2])]
    columns = ["pair", "run", "seed", "function"]
    heads = pd.DataFrame([(*runs[0], "rare"), (*runs[0], ""), (*runs[1], "v→s")], columns=columns)
    table = retained.retained_roles(heads, runs, {label(drawn): drawn})
    figure = retained.draw_retained(table)
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    panel = figure.axes[titles.index(f"{BASE[0]}, from random weights\ngates on all kinds")]
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["2", "1"]


def test_figure_8_tells_how_many_heads_have_several_functions(data):
    assert label_count("v→s, v→o") == 2
    assert label_count("") == 0
    names = dict(zip(("pair", "run", "seed"), BASE, strict=True))
    heads = pd.DataFrame([names | {"function": "v→s, v→o"}, names | {"function": "v→s"}])
    table = retained.retained_roles(heads, [BASE], {})
    (row,) = table[(table["function"] == "syntactic") & (table["run"] == "baseline")].to_dict(
        "records"
    )
    assert (row["heads"], row["several"], row["labels"]) == (2, 1, 3)
    # The baseline's head 1.1 has a position and a relation: it alone is hatched.
    ours = data["fig8"].query("run == 'baseline' and several != 0")
    assert ours[["function", "several", "labels"]].to_numpy().tolist() == [
        ["positional and syntactic", 1, 2]
    ]
    figure = retained.draw_retained(data["fig8"])
    hatched = [bar for bar in figure.axes[0].patches if bar.get_hatch()]
    assert [bar.get_height() for bar in hatched if bar.get_height()] == [1]
    assert figure.legends[0].get_texts()[-1].get_text() == "several functions"
