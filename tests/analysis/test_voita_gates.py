"""Figures of gates and of heads left, against closed forms and numbers worked out by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest

from headcount.analysis.scores import BOOTSTRAP, SEEDS
from headcount.analysis.tables.voita import gates as figures

PAIR = "synthetic.en-xx"
GATES = SimpleNamespace(temperature=0.33)


def test_a_gate_has_its_whole_probability_and_the_masses_that_the_paper_prints() -> None:
    table = figures.distributions({"gates": GATES})
    sums = table.pivot_table("value", ["temperature", "log_alpha"], "part", "sum")
    whole = sums["hard"] / 400 + sums["mass"]  # densities lie 1/400 apart
    assert whole.tolist() == pytest.approx([1] * 6, abs=0.01)
    masses = table[(table["temperature"] == 0.5) & (table["part"] == "mass")]
    printed = table[table["part"] == "printed"]
    both = masses.merge(printed, on=["log_alpha", "gate"])
    assert len(both) == 6
    assert both["value_x"].tolist() == pytest.approx(both["value_y"].tolist(), abs=0.005)


RUNS = pd.DataFrame(
    [
        ("l0", "gates", "enc_self", 0.0, "baseline", 1, 8, 30.0, 0.0),
        ("l0", "gates", "enc_self", 0.0, "baseline", 2, 8, 32.0, 0.0),
        ("l1", "gates", "enc_self", 1.0, "baseline", 1, 3, 28.0, -2.0),
        ("l2", "gates", "enc_self", 2.0, "baseline", 1, 5, 29.0, -1.0),
        ("ranked", "ranked", "enc_self", 1.0, "baseline", 1, 3, 27.0, -3.0),
        ("from-h2", "gates", "enc_self", 1.0, "h2", 1, 4, 29.5, -0.5),
    ],
    columns=["run", "method", "scope", "lambda", "start", "seed", "scope_left", "score", "delta"],
).assign(pair=PAIR, test_set="test", scope_heads=8, start_score=31, control_score=30)
RUNS = RUNS.assign(delta_low=RUNS["delta"] - 1, delta_high=RUNS["delta"] + 1)


def test_encoder_heads_stand_with_means_over_seeds_before_the_paper() -> None:
    points = figures.encoder_points(RUNS)
    ours = points[points["source"] == "ours"]
    assert ours["run"].tolist() == ["l0", "l2", "l1"]  # most heads first
    assert ours[["heads_left", "score", "seeds"]].iloc[0].tolist() == [8, 31, 2]
    assert ours["spread"].tolist() == [SEEDS, BOOTSTRAP, BOOTSTRAP]
    assert ours[["low", "high"]].iloc[0].tolist() == pytest.approx([31 - 2**0.5, 31 + 2**0.5])
    assert ours[["low", "high"]].iloc[2].tolist() == [27, 29]  # of −2 ± 1 around the control, 30
    paper = points[points["source"] == "paper"]
    assert paper[["pair", "heads_left", "score"]].iloc[0].tolist() == ["wmt.en-ru", 48, 29.6]


def layers(run: str, left: list[int]) -> pd.DataFrame:
    """Return layers of a gates run: one of the encoder, five of the decoder's types."""
    kinds = ["enc_self", *["dec_self"] * 5, *["dec_enc"] * 5]
    table = pd.DataFrame({"kind": kinds, "layer": [0, *range(5), *range(5)], "heads_left": left})
    table = table.assign(pair=PAIR, run=run, seed=1, method="gates", scope="all", heads=8)
    return table.assign(start="baseline", **{"lambda": 1.0})


def test_heads_left_by_attention_type_with_fewest_pruned_first():
    table = pd.concat([layers("few", [1, *[4] * 10]), layers("most", [*[8] * 10, 7])])
    points = figures.points_left(table, "figure9", ["kind"])
    ours = points[points["source"] == "ours"]
    assert ours["point"].unique().tolist() == ["most", "few"]
    assert ours[["kind", "pruned", "heads", "heads_left"]].to_numpy().tolist()[3:] == [
        ["enc_self", 47, 8, 1],
        ["dec_self", 47, 40, 20],
        ["dec_enc", 47, 40, 20],
    ]
    paper = points[(points["source"] == "paper") & (points["pair"] == "wmt.en-ru")]
    assert (paper["pruned"] == paper["point"]).all()  # the sums of the types agree with its axis
    table = pd.concat([layers("l1", [2, *[8] * 10]), layers("l1", [6, *[8] * 10]).assign(seed=2)])
    encoder = figures.points_left(table, "figure9", ["kind"]).iloc[0]
    assert (encoder["mean_pruned"], encoder["mean_left"]) == (4, 4)
    assert (encoder["low"], encoder["high"]) == pytest.approx((4 - 8**0.5, 4 + 8**0.5))


def test_two_neighbouring_layers_of_a_deep_decoder_are_taken_together() -> None:
    table = layers("few", [8, 1, 2, 3, 4, 5, *[8] * 5])
    points = figures.points_left(table, "figure10", ["kind", "layers"])
    ours = points[(points["source"] == "ours") & (points["kind"] == "dec_self")]
    assert ours["layers"].tolist() == ["0–1", "2–3", "4"]
    assert ours["heads_left"].tolist() == [3, 7, 5]
    assert ours["pruned"].tolist() == [40 - 15] * 3
    assert set(figures.points_left(table, "figure10", ["kind", "layers"])["kind"]) == {
        "dec_self",
        "dec_enc",
    }


def test_speed_ups_are_by_steps_of_the_search() -> None:
    times = pd.DataFrame({"model": ["baseline", "l1"] * 2, "repeat": [1, 1, 2, 2]})
    times = times.assign(seconds=[4.0, 6.0, 4.0, 6.0], sentences=2, steps=[20, 60, 20, 60])
    times = times.assign(pair=PAIR, run="speed", seed=1, phase="decode", batch_size=1)
    times = times.assign(heads_left=[8, 3] * 2, parameters=100, file_bytes=400)
    models = pd.DataFrame(
        {"pair": [PAIR], "run": "l1", "seed": 1, "method": "gates", "scope": "all"}
    )
    baseline, pruned = figures.timed(times, models).to_dict("records")
    assert (pruned["milliseconds"], pruned["steps"], pruned["repeats"]) == (3000, 30, 2)
    assert (baseline["speedup"], pruned["speedup"]) == (1, pytest.approx(2))  # 0.2 and 0.1 s a step
    assert pruned["speedup_low"] == pytest.approx(2)  # both repeats agree
    assert pd.isna([baseline["method"], baseline["speedup_low"]]).all()
