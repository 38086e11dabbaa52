"""Masks and dropout as regularisers, from planted files; every number is worked out beside it."""

import math

import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import gather_results, one_row
from dropout_files import PAIR, models_by_dropout
from headmask_files import MODEL

from headcount.base.errors import UserError
from headcount.base.files import write_json
from headcount.base.settings.importance import ImportanceSettings
from headcount.findings.headmask import regularisation, regularisation_figure

SETTINGS = {"model": MODEL.with_dropout(0.0), "importance": ImportanceSettings()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    lists = models_by_dropout(tmp_path_factory.mktemp("runs"))
    return gather_results("headmask", lists, SETTINGS)


@pytest.fixture(scope="module")
def table(results):
    return regularisation.table(results)


def row(table, run, test_set, statistic, reference=""):
    keys = {"run": run, "test_set": test_set, "statistic": statistic, "reference": reference}
    return one_row(table.tidy, keys)


def test_means_over_seeds_and_test_sets(table):
    # BLEU 31 and 34; on the other test set 21 and 24.
    assert row(table, "random-2", "flickr", "bleu")["value"] == 32.5
    assert row(table, "random-2", "mscoco", "bleu")["value"] == 22.5
    assert row(table, "random-2", "mean", "bleu")["value"] == 27.5
    assert row(table, "random-2", "dev", "dev_loss")["value"] == pytest.approx(1.95)
    assert row(table, "random-2", "dev", "update")["value"] == 15  # 10 and 20
    assert row(table, "baseline", "dev", "update")["value"] == 25  # 30 and 20
    shares = [row(table, run, "mean", "bleu")["share"] for run in ("baseline", "random-2")]
    assert shares == [0, pytest.approx(2 / 6)]  # two of six heads in every update
    assert row(table, "random-3-d0.1", "mean", "bleu")["share"] == pytest.approx(0.5)
    assert row(table, "random-3-d0.1", "mean", "bleu")["dropout"] == 0.1


def test_dev_loss_chooses_one_run_without_masks_and_one_with(table):
    """Of 2.1, 1.9, 1.8 and of 1.95, 1.85; by BLEU of the test sets nothing is chosen."""
    chosen = table.tidy.loc[table.tidy["chosen"] == "yes", "run"].unique().tolist()
    assert chosen == ["baseline-d0.3", "random-3-d0.1"]


@pytest.mark.parametrize(
    ("without", "tenth", "fifth", "chosen"),
    [
        # 0.2 is worse on the seeds that all have; seed 4 alone would turn the means.
        ((3.0, 3.0, 3.0), (1.0, 1.1, 1.2, 9.0), (1.2, 1.3, 1.4), "baseline-d0.1"),
        # Two trainings do not count where others have three, nor do they take seed 3 from these.
        ((3.0, 3.0, 3.0), (1.0, 1.1, 1.2), (0.2, 0.3), "baseline-d0.1"),
        ((3.0, 3.0, 3.0), (1.0, 1.1, 9.0), (0.2, 0.3), "baseline"),
        ((3.0, 3.0), (1.0, 1.1), (0.2, 0.3), "baseline-d0.2"),  # no run has more than two
        ((3.0, 3.0), (1.0, 1.1), (0.2,), "baseline-d0.1"),
    ],
)
def test_dropout_is_chosen_over_the_seeds_that_all_runs_have(without, tenth, fifth, chosen):
    losses = {"baseline": without, "baseline-d0.1": tenth, "baseline-d0.2": fifth}
    rates = {"baseline": 0.0, "baseline-d0.1": 0.1, "baseline-d0.2": 0.2}
    rows = [
        ("p", run, seed, rates[run], loss, 5, 0)
        for run, of_run in losses.items()
        for seed, loss in enumerate(of_run, 1)
    ]
    columns = ["pair", "run", "seed", "dropout", "dev_loss", "update", "cut_short"]
    models = pd.DataFrame(rows, columns=columns)
    bleu = pd.DataFrame(columns=["pair", "run", "seed", "test_set", "bleu"])
    shares = pd.Series(dtype=float)
    found = regularisation.regularisation_table(models, bleu, shares, [])
    assert set(found.loc[found["chosen"] == "yes", "run"]) == {chosen}
    assert set(found["dropout"]) == {0.0, 0.1, 0.2}  # to the last digit, whatever the seeds


@pytest.mark.parametrize(
    ("run", "reference", "against", "differences"),
    [
        ("random-2", "baseline", "baseline", (1, 2)),
        ("random-2", "same dropout", "baseline", (1, 2)),
        ("random-2", "tuned dropout", "baseline-d0.3", (-2, -2)),
        ("random-3-d0.1", "baseline", "baseline", (2, 4)),
        ("random-3-d0.1", "same dropout", "baseline-d0.1", (1, 3)),
        ("random-3-d0.1", "tuned dropout", "baseline-d0.3", (-1, 0)),
        ("baseline", "tuned dropout", "baseline-d0.3", (-3, -4)),
    ],
)
def test_differences_of_a_seed_are_tested_over_seeds(table, run, reference, against, differences):
    """Of two, a and b: mean m, standard error |a − b| ÷ 2, t = m ÷ that, of one degree of freedom.

    p = 1 − 2 ÷ π · atan |t|; the interval reaches tan(0.475 π) = 12.7062 errors.
    """
    mean, error = sum(differences) / 2, abs(differences[0] - differences[1]) / 2
    p = 1 - 2 / math.pi * math.atan(abs(mean) / error) if error else 0
    for test_set in ("mean", "flickr", "mscoco"):
        found = row(table, run, test_set, "bleu", reference)
        assert (found["against"], found["value"], found["seeds"]) == (against, mean, 2)
        assert found["low"] == pytest.approx(mean - 12.7062 * error, rel=1e-4)
        assert found["high"] == pytest.approx(mean + 12.7062 * error, rel=1e-4)
        assert found["p"] == pytest.approx(p, abs=1e-6)


def test_no_run_is_compared_with_itself(table):
    for run, references in (
        ("baseline", {"", "tuned dropout"}),
        ("baseline-d0.3", {"", "baseline"}),
        ("baseline-d0.1", {"", "baseline", "tuned dropout"}),
    ):
        of_run = table.tidy[(table.tidy["run"] == run) & (table.tidy["test_set"] == "mean")]
        assert set(of_run["reference"]) == references


def test_people_read_means_and_differences(table):
    shown = table.shown.set_index(["of", "run"])
    masked = shown.loc[("dev loss", "random-2")]
    # 1.9 − 2.0 and 2.0 − 2.2: −0.15, error 0.05; t = 3 and p as of BLEU's 1 and 2.
    assert masked["to baseline"] == "-0.150 (-0.785 to +0.485), p 0.20"
    assert (masked["mean"], masked["masked"], masked["update"]) == ("1.950", "33.3 %", "15")
    assert shown.loc[("BLEU, mean", "random-2"), "to baseline"] == "+1.50 (-4.85 to +7.85), p 0.20"
    assert shown.loc[("BLEU, flickr", "baseline"), "to baseline"] == "–"
    assert shown.loc[("BLEU, flickr", "baseline"), "mean"] == "31.00"
    parts = ["dev loss", "BLEU, mean", "BLEU, flickr", "BLEU, mscoco"]
    assert list(table.shown["of"]) == [part for part in parts for _ in range(5)]


def test_edges_that_are_no_optimum_are_warned_of(table, results):
    """Of seed 1 `baseline` was lowest at its last update; of seed 2 one validation of two followed
    the lowest of random-3-d0.1. Of 0, 0.1 and 0.3 the last is tuned dropout; with 0.1, dev loss
    lies 0 and 0.2 higher: 0.1, standard error 0.1, t 12.7062.
    """
    told = (
        f"{PAIR}: 2 of 10 trainings (baseline, random-3-d0.1) ended before dev loss had turned: it "
        "was lowest at the last update, or fewer validations followed than train.patience asks "
        "for. Longer ones may be better.",
        f"{PAIR}: tuned dropout: the highest that was tried without masks, so that a higher one "
        "may be better still.",
        f"{PAIR}: dev loss of baseline-d0.1 lies +0.1000 (-1.1706 to +1.3706) nats above that of "
        "tuned dropout (baseline-d0.3): other trainings might choose it.",
    )
    assert table.warnings == regularisation_figure.figure(results).warnings == told
    assert row(table, "baseline", "dev", "cut_short")["value"] == 0.5
    assert row(table, "random-2", "dev", "cut_short")["value"] == 0


def test_a_mean_is_over_the_test_sets_that_other_runs_have(tmp_path):
    """BLEU on the easy one alone would be 8 more than that of a baseline, which has a hard one."""
    files = []
    for run, scores in {"baseline": {"easy": 30, "hard": 10}, "impt-6": {"easy": 28}}.items():
        told = [
            {"test_set": test, "metric": "bleu", "score": bleu, "engine": "pytorch"}
            for test, bleu in scores.items()
        ]
        path = tmp_path / run / "bleu.json"
        write_json(path, {"pair": PAIR, "run": run, "seed": 1, "scores": told})
        files.append(path)
    assert len(regularisation.read_bleu(files[:1])) == 2
    with pytest.raises(UserError, match=r"of impt-6, seed 1 .*: expected BLEU on hard, as other"):
        regularisation.read_bleu(files)


@pytest.mark.parametrize(("patience", "cut"), [(0, 0), (1, 0), (2, 1), (5, 1)])
def test_a_training_waits_for_as_many_validations_as_patience_says(patience, cut):
    """Every 75 updates to 3,000, lowest at 2,925: one validation followed."""
    key = dict(zip(regularisation.KEYS, ("p", "baseline", 1), strict=True))
    models = pd.DataFrame([key | {"update": 2925, "patience": patience}])
    curves = pd.DataFrame([key | {"step": step} for step in range(75, 3001, 75)])
    assert regularisation.with_ends(models, curves)["cut_short"].tolist() == [cut]
    later = models.assign(update=3000)
    assert regularisation.with_ends(later, curves)["cut_short"].tolist() == [1]
    early = models.assign(update=2625)  # five validations before the end
    assert regularisation.with_ends(early, curves)["cut_short"].tolist() == [0]


def test_runs_of_too_few_trainings_are_named(table):
    """Of two trainings each, `random-2` loses one."""
    rows = table.tidy.copy()
    rows.loc[rows["run"] == "random-2", "seeds"] = 1
    found = regularisation.warn_of_edges(rows)
    assert found[1:-1] == table.warnings[1:] and found[-1] == (
        f"{PAIR}: too few trainings to be chosen: random-2 (1). With more of them dev loss may "
        "choose otherwise."
    )


def test_masks_beside_tuned_dropout_are_named(table):
    assert (
        f"{PAIR}: no run masks heads at tuned dropout (baseline-d0.3), so that nothing says what "
        "masks add to it." in table.notes
    )


def test_words_say_what_is_covered(table, results):
    assert "Dropout of the model: 0." in table.notes
    both = {"table": table, "figure": regularisation_figure.figure(results)}
    assert tell_what_is_covered(both) == []  # no interval over test sentences


def test_one_seed_has_differences_and_no_interval(tmp_path):
    lists = models_by_dropout(tmp_path)
    one = {
        kind: [path for path in files if "seed2" not in path.parts] for kind, files in lists.items()
    }
    table = regularisation.table(gather_results("headmask", one, SETTINGS))
    found = row(table, "random-2", "mean", "bleu", "baseline")
    assert (found["value"], found["low"], found["p"], found["seeds"]) == (1, "", "", 1)
    assert (
        table.shown.set_index(["of", "run"]).loc[("BLEU, mean", "random-2")]["to baseline"]
        == "+1.00"
    )


def test_points_are_differences_to_the_baseline_by_share(results):
    figure = regularisation_figure.figure(results)
    points = figure.data.set_index("run")
    assert points["value"].to_dict() == {
        "baseline": 0,
        "baseline-d0.1": 1,
        "baseline-d0.3": 3.5,
        "random-2": 1.5,
        "random-3-d0.1": 3,
    }
    series = points[["series", "dropout"]].apply(tuple, axis=1).to_dict()
    assert series["random-2"] == ("random", 0.0) and series["random-3-d0.1"] == ("random", 0.1)
    (panel,) = figure.drawing.axes
    # By way and dropout: without masks at 0 % exactly, also those that no masks are compared with.
    marks = [each[0].get_xydata().tolist() for each in panel.containers]
    assert marks == [[[0, 0]], [[0, 1]], [[0, 3.5]], [[pytest.approx(100 / 3), 1.5]], [[50, 3]]]
    shapes = [each[0].get_marker() for each in panel.containers]
    assert shapes == ["D", "D", "D", "o", "o"]
    lines = [line.get_xydata().tolist() for line in panel.lines if line.get_linestyle() == "-"]
    assert [[0, 1], [50, 3]] in lines  # from dropout 0.1 alone to half of the heads
    (legend,) = figure.drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("dropout 0", "dropout 0.1", "dropout 0.3", "no masks", "random"),
        *("baseline", "tuned dropout", "95 % interval"),
    ]
    assert f"Data: {PAIR}; seeds 1, 2; " in figure.text


def test_ways_to_mask_as_many_heads_stand_next_to_each_other(results):
    points = regularisation_figure.figure(results).data
    signed = points[points["run"] == "random-2"].assign(run="impt-2-signed", series="impt-signed")
    drawing = regularisation_figure.draw_regularisation(pd.concat([points, signed]))
    (panel,) = drawing.axes
    places = [each[0].get_xdata()[0] for each in panel.containers[3:]]
    assert places == pytest.approx([100 / 3, 50, 100 / 3 + 1.0])  # percentage points
    alone = regularisation_figure.draw_regularisation(points.assign(low="", high=""))
    labels = [text.get_text() for text in alone.legends[0].get_texts()]
    assert "95 % interval" not in labels and "tuned dropout" in labels
