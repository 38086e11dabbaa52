"""BLEU by heads per layer, from planted files; every expected number is worked out beside it."""

import json
from math import sqrt

import pandas as pd
import pytest
from captions import tell_what_is_covered
from chapters import gather_results, list_run
from heads_files import BLEU, LINES, PAIR, TWO, WORSE, models_by_heads

from headcount.base.settings.pretrained import ExperimentModel
from headcount.findings.general import heads_per_layer
from headcount.findings.results import Results
from headcount.findings.setting import describe_setting


def plant(folder, runs) -> Results:
    return gather_results("general", models_by_heads(folder, runs), {})


@pytest.fixture
def two_seeds(tmp_path):
    return plant(tmp_path, TWO)


def test_each_model_has_its_heads_and_its_difference_to_the_baseline_of_the_seed(two_seeds):
    table = heads_per_layer.table(two_seeds).tidy
    assert list(table["run"].unique()) == ["baseline-h2", "baseline", "baseline-h12"]  # by heads
    sizes = table[["run", "heads_per_layer", "head_width", "parameters"]].drop_duplicates()
    assert sizes.to_numpy().tolist() == [
        ["baseline-h2", 2, 12, 12345],
        ["baseline", 4, 6, 12345],
        ["baseline-h12", 12, 2, 12345],
    ]
    first, second, both = table[table["run"] == "baseline-h2"].to_dict("records")
    # All lines are wrong in the same way, so every resample has the same difference.
    for name in ("delta", "delta_low", "delta_high"):
        assert first[name] == pytest.approx(BLEU - 100)
        assert second[name] == 0
    assert (first["over"], both["over"], both["seed"]) == ("test sentences", "seeds", "")
    # Speeds 300, 900, 600 and 300, 1800, 600: the median of each is 600, the mean is not.
    assert first["tokens_per_s"] == second["tokens_per_s"] == both["tokens_per_s"] == 600


def test_models_of_another_dropout_differ_in_more_than_their_heads(tmp_path):
    planted = models_by_heads(tmp_path, TWO)
    for path in planted["models_by_heads"]:
        if "baseline-h2" in path.parts:
            facts = json.loads(path.read_text())
            facts["model"]["dropout"] += 0.2
            path.write_text(json.dumps(facts))
    table = heads_per_layer.table(gather_results("general", planted, {})).tidy
    assert set(table["run"]) == {"baseline", "baseline-h12"}


def test_over_seeds_there_is_a_t_test(two_seeds):
    """Of two differences, d and 0: t = mean ÷ (|d| / 2) = ±1, of one degree of freedom p = 0.5.

    The interval reaches tan(0.475 π) = 12.706 standard errors.
    """
    table = heads_per_layer.table(two_seeds).tidy
    row = table.query("run == 'baseline-h2' and over == 'seeds'").iloc[0]
    mean = (BLEU - 100) / 2
    assert row["bleu"] == pytest.approx((BLEU + 100) / 2)
    assert (row["delta"], row["p"]) == (pytest.approx(mean), pytest.approx(0.5))
    assert row["delta_low"] == pytest.approx(mean * (1 + 12.7062), rel=1e-4)
    assert row["delta_high"] == pytest.approx(mean * (1 - 12.7062), rel=1e-4)


def test_people_read_a_row_for_each_run(two_seeds):
    shown = heads_per_layer.table(two_seeds).shown.set_index("run")
    two, whole = shown.loc["baseline-h2"], shown.loc["baseline"]
    assert (two["heads per layer"], two["width of a head"]) == ("2", "12")
    assert (two["parameters"], two["tokens/s"]) == ("12,345", "600")
    # 77.31 and 100: half their difference is 11.35, times √2 the standard deviation.
    assert two["BLEU"] == "88.65 ± 16.05" and two["difference"] == "-11.35 ± 16.05"
    assert two["95 % interval"] == "-22.69 to -22.69, +0.00 to +0.00"
    assert two["over seeds"] == "-155.53 to +132.83" and two["p (t-test)"] == "0.50"
    assert whole["BLEU"] == "100.00 ± 0.00"
    empty = ["difference", "95 % interval", "p", "over seeds", "p (t-test)"]
    assert set(whole[empty]) == {"–"}


def test_bars_are_deviations_over_seeds(two_seeds):
    found = heads_per_layer.figure(two_seeds)
    point = found.data.iloc[0]
    assert (point["run"], point["heads_per_layer"], point["seeds"]) == ("baseline-h2", 2, 2)
    reach = (100 - BLEU) / 2 * sqrt(2)
    assert (point["low"], point["high"]) == (
        pytest.approx(point["bleu"] - reach),
        pytest.approx(point["bleu"] + reach),
    )
    (panel,) = found.drawing.axes
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["2", "4", "12"]


def test_of_one_seed_bars_are_intervals_of_the_difference(tmp_path):
    results = plant(tmp_path, {"baseline": (LINES,), "baseline-h2": (WORSE,)})
    table, found = heads_per_layer.table(results), heads_per_layer.figure(results)
    assert "over seeds" not in table.shown and set(table.tidy["over"]) == {"test sentences", ""}
    two, whole = found.data.to_dict("records")
    assert (two["low"], two["high"]) == (pytest.approx(BLEU), pytest.approx(BLEU))
    assert two["spread"] == "bootstrap, 95 %, of the difference to the baseline"
    assert (whole["low"], whole["high"], whole["spread"]) == (100, 100, "")
    assert tell_what_is_covered({"table": table, "figure": found}) == ["figure", "table"]


def test_captions_of_other_chapters_tell_how_many_heads_such_a_model_has(tmp_path):
    """3 + 3 layers of 4 heads are 9 attention layers: of 2 heads 18, of 1 head 9."""
    lists = {"trained_runs": []}
    for run in ("baseline", "random-6", "baseline-h2", "baseline-h1"):
        list_run(lists, tmp_path, (PAIR, run, 1))
    results = Results(lists, {"model": ExperimentModel(preset="small")})
    table = pd.DataFrame(
        {"pair": PAIR, "run": [*results.runs], "seed": 1}, columns=["pair", "run", "seed"]
    )
    model, data = describe_setting(results, table)
    assert "36 heads, pre-norm" in model
    assert data.endswith(
        "seed 1; N = 6 of 36 heads; baseline-h2: 18 heads, together as wide; "
        "baseline-h1: 9 heads, together as wide."
    )
