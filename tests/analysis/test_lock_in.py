"""Collapse of masked training, and heads that it locked in."""

import numpy as np
import pandas as pd
import pytest

from headcount.analysis import collapse as training
from headcount.analysis.frames import HEAD, RUN
from headcount.analysis.tables.headmask import lock_in
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
    run = RunSettings(method="importance", heads=1, warmup_mask_updates=held)
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


def test_slopes_of_locked_heads_are_means_over_locked_updates():
    slope = [[0.5, 1, 7, 0], [0.5, 4, 1, 0], [2, 7, 7, -6]]
    masked = [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    heads = lock_in.locked_in(history_of(masked, slope))
    table = lock_in.locked_heads(heads, curves_of((PAIR, "baseline", 9), (PAIR, "impt-1", 9)))
    assert table["head"].tolist() == pytest.approx([np.nan, 0, 0], nan_ok=True)
    of = table.iloc[1]
    assert (of["locked_from"], of["locked_to"], of["locked_intervals"]) == (0, 100, 2)
    assert (of["slope"], of["slope_sd"], of["importance_end"]) == (2.5, 1, 14)
    assert table["importance_before"].tolist()[2] == 0 and table["was_held"].isna().all()
    with pytest.raises(UserError, match="slopes.csv"):
        lock_in.history(record("masked", SHARES), slopes(FLAT, updates=40), {"impt-1": RULE})


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
    collapsed = training.collapses(masks, curves, runs)
    assert collapsed["run"].tolist() == ["impt-1"] * count
    nothing = training.collapses(masks[:0], CURVES[[*RUN, "step"]][:0], runs)
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
