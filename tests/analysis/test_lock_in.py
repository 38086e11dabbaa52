"""Collapse of masked training, and heads that it locked in."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from headcount.analysis import collapse as training
from headcount.analysis.frames import HEAD, RUN
from headcount.analysis.tables import lock_in
from headcount.base.errors import UserError
from headcount.base.settings.training_runs import RunSettings

PAIR = "multi30k.en-de"
HEADS = [("enc_self", 0, 0), ("dec_self", 0, 0), ("dec_self", 0, 1), ("dec_enc", 1, 0)]
RULE = RunSettings(method="importance", heads=1)


def record(column, values, run="impt-1", seed=9, updates=50):
    """Return one column of a training: a row of `values` for every interval, a value for a head."""
    rows = [
        (PAIR, run, seed, (place + 1) * updates, *head, value)
        for place, interval in enumerate(values)
        for head, value in zip(HEADS, interval, strict=True)
    ]
    return pd.DataFrame(rows, columns=[*RUN, "step", *HEAD, column])


def slopes(values, **training):
    """Return slopes whose importance is twice their size and whose deviation is 1."""
    frame = record("slope_mean", values, **training)
    return frame.assign(slope_sd=1.0, importance=2 * frame["slope_mean"].abs())


def history_of(masked, slope, settings=RULE, **training):
    runs = {training.get("run", "impt-1"): settings}
    return lock_in.history(record("masked", masked, **training), slopes(slope, **training), runs)


def curves_of(*trainings):
    return pd.DataFrame(trainings, columns=RUN).assign(step=100)


SHARES = [[0.1, 0.9, 0.9, 0], [0.1, 1, 0.2, 0.9], [0.2, 0.9, 0.9, 1]]
FLAT = [[1.0, 2.0, 3.0, 4.0]] * 3


CASES = [(50, 0, [[0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 1, 1]])]
CASES += [(25, 0, [[0, 1, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1]])]
CASES += [(25, 20, [[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1]]), (25, 26, [[0, 0, 0, 0]] * 3)]


@pytest.mark.parametrize(("updates", "held", "expected"), CASES)
def test_heads_are_locked_in_over_50_free_updates(updates, held, expected):
    run = RunSettings(method="importance", heads=1, held=held)
    frame = history_of(SHARES, FLAT, run, updates=updates)
    assert frame["locked"].tolist() == np.ravel(expected).tolist()


def test_only_updates_that_mask_count_for_lock_in_and_abandoned_heads():
    run = RunSettings(method="importance", heads=1, probability=0.5)
    counts = training.masking_updates(run, 9, np.array([50, 100]), np.array([50, 50]))
    assert counts.min() > 0 and counts.max() < 40
    masked = [[count / 50, 0.8 * count / 50, 0, 0] for count in counts]
    assert history_of(masked, FLAT[:2], run)["locked"].tolist() == [1, 0, 0, 0] * 2
    late = training.late_frequencies(record("masked", masked), {"impt-1": run})
    assert late.tolist() == pytest.approx([1, 0.8, 0, 0])


def test_slopes_of_other_intervals_are_an_error():
    with pytest.raises(UserError, match="slopes.csv"):
        lock_in.history(record("masked", SHARES), slopes(FLAT, updates=40), {"impt-1": RULE})


def test_slopes_of_locked_heads_are_means_over_locked_updates():
    slope = [[0.5, 1, 7, 0], [0.5, 4, 1, 0], [2, 7, 7, -6]]
    masked = [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    heads = lock_in.by_head(history_of(masked, slope))
    table = lock_in.locked_heads(heads, curves_of((PAIR, "baseline", 9), (PAIR, "impt-1", 9)))
    assert table["head"].tolist() == pytest.approx([np.nan, 0, 0], nan_ok=True)
    of = table.iloc[1]
    assert (of["locked_from"], of["locked_to"], of["locked_intervals"]) == (0, 100, 2)
    assert (of["slope"], of["slope_sd"], of["importance_end"]) == (2.5, 1, 14)
    assert table["importance_before"].tolist()[2] == 0 and table["was_held"].isna().all()


def test_locked_counts_slopes_and_others():
    masked = [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    heads = lock_in.by_head(history_of(masked, [[1, 4, 3, -6], [1, 2, 5, -6], [4, 2, 0, -8]]))
    curves = curves_of((PAIR, "baseline", 9), (PAIR, "impt-1", 9))
    runs = {"baseline": RunSettings(method="baseline"), "impt-1": RULE}
    settings = {"model": SimpleNamespace(grid=SimpleNamespace(size=4))}
    base, of = lock_in.locked(heads, curves, settings, runs).to_dict("records")
    assert (base["n"], base["locked_ever"], base["heads"]) == (0, 0, 4)
    assert np.isnan(base["locked_slope"]) and np.isnan(base["place_both"])
    assert (of["locked_ever"], of["locked_at_end"], of["locked_longest"]) == (2, 1, 100)
    assert of["locked_slope"] == (3 - 8) / 2  # of dec_self.0.0 and dec_enc.1.0
    assert of["others_slope"] == pytest.approx((2 + 8 / 3) / 2)  # all intervals lock a head
    assert of["locked_slope_ratio"] == of["others_slope_ratio"] == 0.5
    assert (of["place_both"], of["place_expected"]) == (1, 2 * 2 / 4)
    assert of["place_p"] == pytest.approx(2 / 3)  # layers with 0, 1 and 1 locked heads


def held(seed, later):
    """Return a training that held the second head and then masked heads in `later`."""
    run = RunSettings(method="importance", heads=1, held=50)
    masked = [[0, 1, 0, 0], later, later]
    return history_of(masked, FLAT, run, run="impt-1-held50", seed=seed)


def test_predictions_of_several_seeds_have_one_p():
    seeds = [held(8, [0, 1, 1, 0]), held(9, [0, 0, 1, 0]), held(1, [0, 0, 0, 0])]
    heads = lock_in.by_head(pd.concat(seeds, ignore_index=True))
    table = lock_in._predicted(heads, "was_held", "holdable").sort_index(level="seed")
    assert table["both"].tolist() == [0, 1, 0]
    assert table["expected"].tolist() == [0, 0.5, 0.25]
    # Seed 8 locks 2 of 4 heads in and seed 9 locks 1 in: the held head is among them by chance.
    assert table["p"].tolist() == pytest.approx([np.nan] + [1 - 0.5 * 0.75] * 2, nan_ok=True)


def test_seeds_that_suggested_a_prediction_cannot_test_it():
    one = lock_in.by_head(history_of(SHARES, FLAT))
    for pair, known in (("synthetic.en-art", [5]), ("wmt.en-de", [1, 3, 5])):
        seeds = [one.assign(pair=pair, seed=seed) for seed in (1, 3, 5)]
        table = lock_in._predicted(pd.concat(seeds), "place", "candidate")
        assert table.dropna(subset="p").index.get_level_values("seed").tolist() == known


def test_areas_count_pairs_of_heads_that_are_ranked_right():
    masked = [[0.2, 0.5, 0.3, 0], [0, 1, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0]]
    slope = [[1, 3, 2, -4], [5, 0, 1, 1], [2, 9, 2, 3], [1] * 4, [1] * 4]
    frame = lock_in.foreseen(history_of(masked, slope), curves_of((PAIR, "impt-1", 9)))
    areas = frame.set_index(["moment", "predictor"])["roc_area"]
    # Start: heads 0, 1 and 2 lock in later, head 3 does not.
    assert areas["start", "slope"] == 1 and areas["start", "size"] == 0
    assert areas["start", "first_decoder_self"] == pytest.approx((0.5 + 1 + 1) / 3)
    # Before: first head 1 against 0, 2 and 3, then heads 0 and 2 against 3.
    assert areas["before", "slope"] == pytest.approx((1 + 2 * 0) / 3)
    assert areas["before", "masked"] == pytest.approx((1 + 2 * 0.5) / 3)
    # Of the two heads that were masked most in the first interval, head 1 locks in.
    assert areas["before_masked", "slope"] == 1
    counts = frame.query("predictor == 'slope'").set_index("moment")["lock_ins"]
    assert counts.to_dict() == {"before": 3, "before_masked": 1, "start": 3}


def test_a_training_without_lock_in_has_a_row_without_a_moment():
    frame = lock_in.foreseen(history_of([[0.1] * 4] * 2, FLAT[:2]), curves_of((PAIR, "impt-1", 9)))
    assert len(frame) == 1 and frame["moment"].isna().all()


CURVES = pd.DataFrame(
    {"pair": PAIR, "run": ["impt-1"] * 4 + ["random-1"] * 2, "seed": 9}
    | {"step": [50, 100, 150, 250, 100, 200], "train_loss": [9, 5, 4, 1, 6, 2]}
    | {"first_pass_loss": [9, 4, np.nan, 3, np.nan, np.nan]}
)


def test_losses_are_those_of_the_second_half_with_first_passes():
    losses = training.late_losses(CURVES)
    assert losses.loc[PAIR, "impt-1", 9].tolist() == [3, 1]
    assert losses.loc[PAIR, "random-1", 9].tolist() == pytest.approx([np.nan, 2], nan_ok=True)


@pytest.mark.parametrize(("share", "loss", "count"), [(0.9, 3, 1), (0.89, 3, 0), (0.9, 0.5, 0)])
def test_trainings_collapse_if_masked_heads_hurt(share, loss, count):
    masked = [[0, 0, 0, 0]] * 3 + [[0, share, 0, 0]] * 2
    masks = pd.concat([record("masked", masked), record("masked", masked[-2:], run="random-1")])
    curves = CURVES.assign(first_pass_loss=CURVES["first_pass_loss"].replace(3, loss))
    runs = {"impt-1": RULE, "random-1": RunSettings(method="random", heads=1)}
    collapsed = training.collapsed_in_training(masks, curves, runs)
    assert collapsed["run"].tolist() == ["impt-1"] * count
    nothing = training.collapsed_in_training(masks[:0], CURVES[[*RUN, "step"]][:0], runs)
    assert list(nothing) == RUN and nothing.empty


def test_evidence_of_collapse():
    masks = record("masked", [[0, 0.4, 0, 0], [0, 0.8, 0.2, 0]])
    values = [record("value", [[1, 6, 0, 1]], run=run) for run in ("baseline", "impt-1")]
    importance = pd.concat(values).drop(columns="step").assign(statistic="importance")
    masking = pd.DataFrame({"index": [2, 1, 1], "delta": [5, -2, 7]}).assign(order="group")
    masking = masking.assign(delta_low=masking["delta"] - 1, delta_high=masking["delta"] + 1)
    masking[RUN] = key = (PAIR, "impt-1", 9)
    runs = {"impt-1": RULE, "baseline": RunSettings(method="baseline")}
    of_table = importance, masks, CURVES[:4], masking, runs, pd.DataFrame([key], columns=RUN)
    base, of = lock_in.collapse(*of_table).to_dict("records")
    assert (base["collapsed"], base["largest_frequency"]) == ("no", 0)
    assert np.isnan(base["masked_loss"]) and np.isnan(base["top_n_share"])
    assert (of["heads"], of["n"], of["collapsed"]) == (4, 1, "yes")
    assert of["largest_frequency"] == pytest.approx(0.6) and of["late_largest_frequency"] == 0.8
    assert of["median_frequency"] == pytest.approx(0.05) and of["abandoned_heads"] == 0
    assert of["top_n_share"] == pytest.approx(0.6 / 0.7) and of["most_masked_importance"] == 3
    assert (of["first_pass_loss"], of["masked_loss"]) == (3, 1)
    assert (of["top_group_delta"], of["top_group_low"], of["top_group_high"]) == (-2, -3, -1)
