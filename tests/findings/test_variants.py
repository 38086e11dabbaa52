"""Ways to choose heads side by side, from planted files; every number is worked out beside it."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import gather_results, one_row
from headmask_files import MODEL
from matplotlib.backends.backend_agg import FigureCanvasAgg
from variant_files import IMPT, PAIR, SIGNED, variants

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.findings.headmask import variants as made
from headcount.findings.headmask import variants_figure
from headcount.findings.headmask.locked_in import History

SETTINGS = {"model": MODEL, "importance": ImportanceSettings()}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return gather_results("headmask", variants(tmp_path_factory.mktemp("runs")), SETTINGS)


@pytest.fixture(scope="module")
def table(results):
    return made.table(results)


def row(table, run, statistic, test_set="", reference=""):
    keys = {"run": run, "statistic": statistic, "test_set": test_set, "reference": reference}
    return one_row(table.tidy, keys)


def test_lowest_dev_loss_bleu_and_time_are_means_over_seeds(table):
    assert row(table, IMPT, "dev_loss", "dev")["value"] == pytest.approx(2.4)
    assert row(table, "baseline", "dev_loss", "dev")["value"] == pytest.approx(2.1)
    assert row(table, SIGNED, "bleu", "flickr")["value"] == 34
    assert row(table, SIGNED, "bleu", "mean")["value"] == 29  # 32 and 22, 36 and 26
    seconds = {run: row(table, run, "seconds")["value"] for run in ("baseline", IMPT, SIGNED)}
    assert seconds == {"baseline": 150, IMPT: 205, SIGNED: 220}
    # 150 / 100 and 260 / 200; 140 / 100 and 300 / 200; 110 / 100 and 180 / 200.
    ratios = {IMPT: 1.4, SIGNED: 1.45, "random-2": 1.0, "baseline": 1.0}
    for run, ratio in ratios.items():
        assert row(table, run, "relative_seconds")["value"] == pytest.approx(ratio)
    assert [row(table, run, "seconds")["n"] for run in ratios] == [2, 2, 2, 0]


@pytest.mark.parametrize(
    ("run", "reference", "against", "losses", "bleus"),
    [
        (IMPT, "baseline", "baseline", (0.2, 0.4), (-1, -3)),
        (IMPT, "random", "random-2", (0.3, 0.6), (-2, -5)),
        (SIGNED, "baseline", "baseline", (-0.25, -0.3), (2, 4)),
        (SIGNED, "random", "random-2", (-0.15, -0.1), (1, 2)),
        ("random-2", "baseline", "baseline", (-0.1, -0.2), (1, 2)),
    ],
)
def test_differences_of_a_seed_are_tested_over_seeds(table, run, reference, against, losses, bleus):
    """Of two, a and b: mean m, standard error |a − b| ÷ 2, t = m ÷ that, of one degree of freedom.

    p = 1 − 2 ÷ π · atan |t|; the interval reaches tan(0.475 π) = 12.7062 errors.
    """
    of = {("dev_loss", "dev"): losses}
    of |= {("bleu", test): bleus for test in ("mean", "flickr", "mscoco")}
    for (statistic, test), (one, other) in of.items():
        found = row(table, run, statistic, test, reference)
        mean, error = (one + other) / 2, abs(one - other) / 2
        assert (found["against"], found["seeds"]) == (against, 2)
        expected = (mean, mean - 12.7062 * error, mean + 12.7062 * error)
        assert [found[name] for name in ("value", "low", "high")] == pytest.approx(
            expected, rel=1e-4
        )
        p = 1 - 2 / math.pi * math.atan(abs(mean) / error)
        assert found["p"] == pytest.approx(p, abs=1e-6)


def test_no_run_is_compared_with_itself_and_time_with_none(table):
    compared = table.tidy[table.tidy["reference"] != ""]
    assert "baseline" not in set(compared["run"])
    assert set(compared.loc[compared["run"] == "random-2", "reference"]) == {"baseline"}
    assert set(compared["statistic"]) == {"dev_loss", "bleu"}


def test_what_was_masked(table):
    """Masks of impt-2, seed 1: of heads 0 and 1, 20 and 20; then of heads 0, 1, 2, 40, 20, 20.

    Of harm are head 0, and then heads 0 and 2: 20 + 60 of 120. Of all heads 2 of 6, then 3 of 6,
    weighted 40 to 80: 4 / 9. Loss added: 0, 3, 1, −1, 0, 1, for 2² / 2 is added to −2 and to 1;
    then −1, 2, −1, 0, 0, −3. Masks: (20 · 3 − 40 + 40 − 20) / 120 = 1 / 3. Heads: 2 / 3 and −1 / 2,
    weighted: −1 / 9. Head 0 is masked in all 60 updates. Seed 2: 40 of 120 masks, a third of the
    heads, and a third twice more; no head in 50 updates.
    """
    found = {name: row(table, IMPT, name)["value"] for name in STATISTICS}
    expected = [(2 / 3 + 1 / 3) / 2, (4 / 9 + 1 / 3) / 2, 1 / 3, (-1 / 9 + 1 / 3) / 2, 0.5]
    assert list(found.values()) == pytest.approx(expected)


STATISTICS = ["harmful_share", "heads_harmful_share", "masked_growth", "heads_growth"]
STATISTICS += ["locked_ever"]


def test_an_interval_without_masks_does_not_count(table):
    # All six heads are of harm there; after it one of six is, another one is masked.
    found = [row(table, SIGNED, name)["value"] for name in STATISTICS]
    assert found == pytest.approx([0, 1 / 6, 1, (5 - 1) / 6, 0])


def test_without_first_passes_nothing_is_told_of_masks(table):
    for run in ("baseline", "random-2"):
        told = set(table.tidy.loc[table.tidy["run"] == run, "statistic"])
        assert told & set(STATISTICS) == {"locked_ever"}
    shown = table.shown.set_index("run")
    assert shown.loc["random-2", "masks of harm":"by all heads"].tolist() == ["–"] * 4


def test_held_updates_do_not_count():
    masked = np.array([[1.0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]])
    slopes = np.array([[1.0] * 6, [1.0, -3, -1, -1, -1, -1]])
    run = RunSettings(method="importance", heads=1, held=20)
    ends, zeros = np.array([20, 60]), np.zeros((2, 6))
    heads = MODEL.grid.heads()
    history = History((PAIR, run.label, 1), run, heads, ends, masked, slopes, zeros, slopes)
    # From update 20 on: the one mask is of use; of the heads −1 + 3 + 4 is added, by six.
    assert made.what_was_masked(history) == pytest.approx(
        {"locked_ever": 0}
        | {"harmful_share": 0, "masked_growth": 3}
        | {"heads_harmful_share": 1 / 6, "heads_growth": 1}
    )


def test_people_read_a_row_per_run(table):
    shown = table.shown.set_index("run")
    assert list(shown.index) == ["baseline", "random-2", IMPT, SIGNED]
    assert shown.loc[IMPT].to_dict() == {
        "pair": PAIR,
        "N": "2",
        "dev loss": "2.400",
        "dev loss, to baseline": "+0.300 (-0.971 to +1.571), p 0.20",  # t = 3
        "dev loss, to random": "+0.450 (-1.456 to +2.356), p 0.20",  # 0.15 · 12.7062 = 1.906
        "BLEU": "24.00",
        "BLEU, to baseline": "-2.00 (-14.71 to +10.71), p 0.30",  # t = 2
        "BLEU, to random": "-3.50 (-22.56 to +15.56), p 0.26",  # 1.5 · 12.7062 = 19.06; t = 7 / 3
        "BLEU, first test set": "29.00",
        "seconds": "205 (1.40 ×)",
        "masks of harm": "50.0 %",
        "of all heads": "38.9 %",
        "loss added by masks": "+0.333",
        "by all heads": "+0.111",
        "locked in": "0.5",
        "seeds": "2",
    }
    assert table.warnings == ()


def test_one_seed_has_differences_and_no_interval(tmp_path):
    lists = {
        kind: [path for path in files if "seed2" not in path.parts]
        for kind, files in variants(tmp_path).items()
    }
    table = made.table(gather_results("headmask", lists, SETTINGS))
    found = row(table, IMPT, "dev_loss", "dev", "random")
    assert found["value"] == pytest.approx(0.3)
    assert [found[name] for name in ("low", "high", "p", "seeds")] == ["", "", "", 1]
    assert table.shown.set_index("run").loc[IMPT, "dev loss, to random"] == "+0.300"


@pytest.mark.parametrize(
    ("run", "against", "apart"),
    [
        ("impt-2-d0.2", "random-2-d0.2", -0.5),
        ("impt-2-rest1", "random-2-rest1", 0.25),
        ("random-2-rest1", "random-2", -2.75),  # what rests alone change
    ],
)
def test_a_run_is_compared_with_random_that_is_alike_but_for_the_choice(table, run, against, apart):
    values = table.tidy[:0].assign(seed=1)
    rows = {"baseline": 1.0, "random-2": 5.0, "random-2-d0.2": 3.0, "impt-2-d0.2": 2.5}
    rows |= {"random-2-rest1": 2.25, "impt-2-rest1": 2.5}
    for name, value in rows.items():
        values.loc[len(values), ["pair", "run", "seed", "test_set", "statistic", "value"]] = [
            *(PAIR, name, 1, "dev", "dev_loss", value)
        ]
    runs = {name: RunSettings.model_validate(name) for name in rows}
    found = made.variants_table(values, runs)
    drawn = found[(found["run"] == run) & (found["reference"] == "random")]
    assert drawn[["against", "value"]].to_numpy().tolist() == [[against, apart]]


def test_a_figure_has_every_number_that_is_drawn(results):
    figure = variants_figure.figure(results)
    told = figure.data.set_index(["statistic", "run"])["value"].to_dict()
    assert told == pytest.approx(
        {
            ("dev_loss", "random-2"): -0.15,
            ("dev_loss", IMPT): 0.3,
            ("dev_loss", SIGNED): -0.275,
            ("harmful_share", IMPT): 0.5,
            ("harmful_share", SIGNED): 0,
            ("heads_harmful_share", IMPT): 7 / 18,
            ("heads_harmful_share", SIGNED): 1 / 6,
        }
    )
    left, right = figure.drawing.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["random-2", IMPT, SIGNED]
    assert left.containers[0][0].get_xydata() == pytest.approx(
        np.array([[-0.15, 0], [0.3, 1], [-0.275, 2]])
    )
    # Equal steps up to 0.1 nats, and each factor of ten as long as the next: 1 and 10 beyond it.
    inches = left.transData.transform([(value, 0) for value in (0, 0.05, 0.1, 1, 10)])[:, 0]
    steps = np.diff(inches)
    assert steps[0] == pytest.approx(steps[1]) and steps[2] == pytest.approx(steps[3])
    masks, heads = (line.get_xydata() for line in right.lines)
    assert masks == pytest.approx(np.array([[50, 1], [0, 2]]))
    assert heads == pytest.approx(np.array([[100 * 7 / 18, 1], [100 / 6, 2]]))


def points_at(*ends: float) -> pd.DataFrame:
    """A run for each pair of ends of an interval of dev loss, its value between them."""
    rows = [
        (PAIR, f"run-{low:g}", "dev_loss", (low + high) / 2, low, high)
        for low, high in zip(ends[::2], ends[1::2], strict=True)
    ]
    return pd.DataFrame(rows, columns=["pair", "run", "statistic", "value", "low", "high"])


def test_the_picture_tells_its_bars_and_its_scale(results):
    drawing = variants_figure.draw_variants(points_at(-2, 0.02, 0.05, 4))
    words = [text.get_text() for text in drawing.legends[0].get_texts()]
    assert words[0] == "95 % t interval over seeds"
    left = drawing.axes[0]
    assert left.get_xlabel().endswith("\n(equal steps up to ±0.1, logarithms where shaded)")
    shaded = sorted((patch.get_x(), patch.get_x() + patch.get_width()) for patch in left.patches)
    assert shaded == [pytest.approx((-10, -0.1)), pytest.approx((0.1, 10))]
    assert left.get_xlim() == pytest.approx((-10, 10))  # logarithms end at a number of the axis
    assert {-10, 10} <= set(left.get_xticks())
    # Without intervals there is no bar to explain, and nothing beyond 0.1 nats is shaded.
    near = variants_figure.draw_variants(points_at(-0.02, 0.02).assign(low="", high=""))
    words = [text.get_text() for text in near.legends[0].get_texts()]
    assert len(words) == 2 and not near.axes[0].patches


@pytest.mark.parametrize(
    "ends", [(-0.02, 0.02), (-0.03, 2), (-0.7, 0.01), (-0.4, 0.15), (-2, 4), (0.01, 60)]
)
def test_numbers_of_an_axis_do_not_touch(ends):
    drawing = variants_figure.draw_variants(points_at(*ends))
    FigureCanvasAgg(drawing).draw()
    labels = drawing.axes[0].get_xticklabels()
    assert {"0", "0.05"} <= {label.get_text() for label in labels}
    boxes = [label.get_window_extent() for label in labels]
    assert all(right.x0 - left.x1 > 3 for left, right in pairwise(boxes))  # pixels


def test_an_axis_has_no_decades_in_which_nothing_is_drawn():
    left = variants_figure.draw_variants(points_at(0.01, 6)).axes[0]
    assert left.get_xlim() == pytest.approx((-0.01, 10))
    left = variants_figure.draw_variants(points_at(-0.98, 0.03)).axes[0]
    assert left.get_xlim() == pytest.approx((-1, 0.06))


def test_words_say_what_is_covered(table, results):
    both = {"table": table, "figure": variants_figure.figure(results)}
    assert tell_what_is_covered(both) == []  # no interval over test sentences
