"""Gates from random weights in tables and figures; every expected number is worked out here.

Wrong lines of 200: with gates from none 10 and 14 at λ = 0.1, 6 at λ = 0; its twin from scratch 4;
on the encoder alone 2 and 8 at λ = 0.2, 1 and 2 at λ = 0. A wrong line costs 0.5 BLEU.
"""

import pandas as pd
import pytest
from chapters import gather_results, make_tables
from voita_files import FROM_NONE, MODEL, pruned_runs

from headcount.base.settings.train import GatesSettings
from headcount.findings.voita_pruning.bleu_curves import method_points
from headcount.findings.voita_pruning.comparison import untuned
from headcount.findings.voita_pruning.records import records

SETTINGS = {"model": MODEL, "gates": GatesSettings()}
START = "random weights"
OTHERS = ["gates-all-l0", "gates-all-l0.1"]
OTHERS += [f"{run}-from-random-1" for run in OTHERS]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return pruned_runs(tmp_path_factory.mktemp("runs"), [*OTHERS, *FROM_NONE])


@pytest.fixture(scope="module")
def tables(files):
    found = make_tables("voita_pruning", files.listed, SETTINGS)
    return {name.removeprefix("voita_"): table for name, table in found.items()}


def test_they_are_recorded_beside_their_control(tables):
    table = tables["pruning"].tidy
    found = table[table["start"] == START].set_index(["run", "seed"])
    row = found.loc[("gates-all-l0.1-from-none", 2)]
    # Gates 0 1 | 0 | 1 | 1 0; 14 wrong lines, 6 of the control.
    assert row[["heads_left", "enc_self", "dec_self", "dec_enc"]].tolist() == [3, 1, 1, 1]
    assert (row["start_bleu"], row["control_bleu"], row["bleu"]) == ("", 97.0, 93.0)
    assert row["delta"] == pytest.approx(-4)
    assert row["delta_low"] < -4 < row["delta_high"] < 0
    shown = tables["pruning"].shown.set_index("run")
    assert shown.loc["gates-all-l0-from-none", "difference"] == "–"
    assert shown.loc["gates-all-l0-from-none", "start"] == "–"
    assert shown.loc["gates-all-l0", "difference"] == "–"


def test_table_2_has_a_column_for_them(tables):
    tidy = tables["table2"].tidy
    found = tidy[(tidy["start"] == START) & (tidy["seed"] == 1)]
    columns = ["run", "training", "updates", "updates_before", "heads_left", "bleu"]
    # The encoder alone has no twin from scratch.
    assert found[columns].values.tolist() == [
        ["gates-all-l0-from-none", "gates from random weights", 1300, 0, 6, 97.0],
        ["gates-all-l0.1-from-none", "gates from random weights", 1300, 0, 3, 95.0],
        ["scratch-gates-all-l0.1-from-none", "scratch", 1300, 0, 3, 98.0],
    ]
    assert (tidy["run"] == "baseline").sum() == 2  # once a seed
    shown = tables["table2"].shown
    (row,) = shown[(shown["start"] == START) & (shown["λ"] == "0.1")].to_dict("records")
    assert (row["heads"], row["from trained"], row["from scratch"]) == (
        "1/1/1",
        "–",
        "98.00 ± 0.00",
    )
    assert row["gates from random weights"] == "94.00 ± 1.41"  # of 95 and 93
    assert set(shown.loc[shown["start"] != START, "gates from random weights"]) == {"–"}


def test_captions_tell_the_start_the_control_and_the_updates(tables):
    words = "Gates from random weights had 1,300 updates, by the curves."
    for name in ("table2", "pruning", "comparison"):
        assert words in tables[name].text
        assert "1,200 of the model that was pruned, then 100 of fine" in tables[name].text
    for table in tables.values():
        assert (
            "rates of training, as many updates as a training and its fine-tuning have, and nothing"
            in table.text
        )


def test_bleu_falls_below_the_control(tables):
    falls = tables["falls"].tidy
    of_all = falls[(falls["start"] == START) & (falls["scope"] == "all") & (falls["seed"] == 1)]
    found = of_all.set_index("limit")
    # The control has 6 heads; λ = 0.1 lies 2 below it.
    assert found.loc[1.0, ["holds_at", "holds_delta", "falls_at", "lambda", "runs"]].tolist() == [
        *(6, 0, 3, 0.1, 1),
    ]
    assert found.loc[1.0, "delta"] == pytest.approx(-2)
    # It lost heads: 1 of 3, 1 of 1 and 1 of 2 are left.
    assert found.loc[1.0, "runs_shorn"] == 1 and found.loc[1.0, "first_kind"] == "enc_self"
    # The encoder alone: 0.5 points below its control with seed 1, 3 with seed 2.
    encoder = falls[(falls["start"] == START) & (falls["scope"] == "enc_self")]
    found = encoder.set_index(["seed", "limit"])
    assert found.loc[(1, 1.0), ["holds_at", "falls_at"]].tolist() == [1, ""]
    assert found.loc[(1, 0.25), ["holds_at", "falls_at"]].tolist() == [3, 1]
    assert found.loc[(2, 1.0), ["holds_at", "falls_at"]].tolist() == [3, 1]


def test_the_start_is_one_of_the_starts_that_are_compared(tables, files):
    table = tables["comparison"].tidy
    found = table[(table["comparison"] == "start") & (table["seed"] == 1)]
    found = found[found["lambda"] == 0.1].set_index("contender")
    assert found.index.tolist() == ["baseline", "random-1", START]
    # 10 wrong lines against 1 of gates on the baseline, and 6 of the control.
    assert found.loc[START, "delta"] == pytest.approx(-4.5)
    assert found.loc[START, "control_delta"] == pytest.approx(-2)
    results = gather_results("voita_pruning", files.listed, SETTINGS)
    points = method_points(records(results), untuned(results))
    ours = points[points["contender"] == START]
    assert set(ours["panel"]) == {"start"} and len(ours) == 4
    at = ours.set_index(["scope", "lambda"])["delta"]
    assert at[("all", 0.1)] == pytest.approx(-3)  # of −2 and −4
    assert at[("enc_self", 0.2)] == pytest.approx(-1.75)  # of −0.5 and −3


def test_alone_they_have_all_tables(tmp_path):
    """No model is pruned further: the baseline is there for comparison only."""
    made = pruned_runs(tmp_path, ["gates-all-l0-from-none", "gates-all-l0.1-from-none"], [2])
    for kind in ("untuned", "untuned_facts", "pruned_speed"):
        made.listed[kind].clear()
    found = make_tables("voita_pruning", made.listed, SETTINGS)
    assert set(found) == {f"voita_{name}" for name in ("table2", "comparison", "falls", "pruning")}
    assert "Gates from random weights had 1,300 updates, by the curves. Tr" in (
        found["voita_table2"].text
    )
    control, row = found["voita_comparison"].tidy.to_dict("records")
    assert (row["contender"], row["control_delta"]) == ("gates", pytest.approx(-4))
    assert (control["run"], control["control_delta"]) == ("gates-all-l0-from-none", 0)
    falls = found["voita_falls"].tidy
    assert falls["holds_at"].tolist() == [6, 6] and falls["falls_at"].tolist() == [3, 3]
    assert not pd.concat([table.tidy for table in found.values()])["pair"].isna().any()
