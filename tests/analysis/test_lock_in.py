"""Masked training: collapse and locked heads, masks and dropout as regularisers."""

import named_runs
import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from headcount.analysis import collapse as training
from headcount.analysis.frames import HEAD, RUN
from headcount.analysis.tables.headmask import lock_in, regularisation
from headcount.base.errors import UserError
from headcount.base.settings.training_runs import RunSettings

HEADS = [("enc_self", 0, 0), ("dec_self", 0, 0), ("dec_self", 0, 1), ("dec_enc", 1, 0)]
RULE = RunSettings(method="importance", heads=1)
PAIR = "multi30k.en-de"
DROPOUT = {"baseline": 0, "baseline-d0.1": 0.1, "random-2": 0, "random-2-d0.1": 0.1}
RUNS = {name: named_runs.RUNS[name] for name in DROPOUT}


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
    assert table["importance_before"].tolist()[2] == 0 and table["in_warmup_mask"].isna().all()
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


def model(run, seed, loss):
    facts = {"model": {"dropout": DROPOUT[run]}, "dev_loss": loss, "update": 100}
    facts["provenance"] = {"settings": {"train": {"patience": 1}}}
    return {"pair": PAIR, "run": run, "seed": seed} | facts


def score(run, seed, **tests):
    entries = [
        {"test_set": test, "metric": metric, "score": value, "engine": "headcount"}
        for test, value in tests.items()
        for metric in ("bleu", "chrf")
    ]
    return {"pair": PAIR, "run": run, "seed": seed, "scores": entries}


def curves(*steps):
    rows = [(PAIR, run, seed, step) for run in RUNS for seed in (1, 2, 3) for step in steps]
    return pd.DataFrame(rows, columns=[*RUN, "step"])


LOSSES = {"baseline": [3, 4, 5], "baseline-d0.1": [2, 3, 4.5], "random-2-d0.1": [1.5, 3, 3.5]}
MODELS = [model(run, k + 1, loss) for run, row in LOSSES.items() for k, loss in enumerate(row)]
SCORES = [
    score(run, seed, first=10 * loss, second=loss)
    for run, losses in LOSSES.items()
    for seed, loss in zip((1, 2, 3), losses, strict=True)
]
MASKS = pd.DataFrame(
    {"pair": PAIR, "run": "random-2-d0.1", "seed": 1, "step": [50, 50, 100, 100]}
    | {"kind": "enc_self", "layer": 0, "head": [0, 1, 0, 1], "masked": [1, 0, 0.5, 0.1]}
)


def table_of(models=MODELS, scores=SCORES, steps=(100, 200)):
    return regularisation.regularisation(models, scores, curves(*steps), MASKS, RUNS)


def row_of(table, statistic, run, reference=None, test_set="dev"):
    chosen = (table["statistic"] == statistic) & (table["run"] == run)
    chosen &= table["reference"].isna() if reference is None else table["reference"] == reference
    (row,) = table[chosen & (table["test_set"] == test_set)].to_dict("records")
    return row


def test_runs_are_compared_by_seed_with_the_baseline_the_same_and_tuned_dropout():
    table = table_of()
    mean = row_of(table, "dev_loss", "random-2-d0.1")
    assert mean["value"] == pytest.approx(8 / 3) and mean["seeds"] == 3
    assert (mean["chosen"], mean["dropout"], mean["share"]) == ("yes", 0.1, 0.4)
    same = row_of(table, "dev_loss", "random-2-d0.1", "same dropout")
    tuned = row_of(table, "dev_loss", "random-2-d0.1", "tuned dropout")
    assert same["reference_run"] == tuned["reference_run"] == "baseline-d0.1"
    test = ttest_rel(*(LOSSES[run] for run in ("random-2-d0.1", "baseline-d0.1")))
    assert same["value"] == -0.5 and same["p"] == pytest.approx(test.pvalue)
    assert (same["low"], same["high"]) == pytest.approx(tuple(test.confidence_interval()))
    base = row_of(table, "bleu", "baseline-d0.1", "baseline", "mean")
    assert base["value"] == pytest.approx(5.5 * (9.5 - 12) / 3)
    against = set(table.loc[table["run"] == "baseline", "reference_run"].dropna())
    assert against == {"baseline-d0.1"} and row_of(table, "update", "baseline")["value"] == 100
    assert table["run"].drop_duplicates().tolist() == list(LOSSES)
    table = table_of(scores=[*SCORES[:-1], score("random-2-d0.1", 3, first=1)])
    assert row_of(table, "bleu", "random-2-d0.1", test_set="mean")["seeds"] == 2
    assert row_of(table, "bleu", "random-2-d0.1", test_set="first")["seeds"] == 3


def test_dev_loss_chooses_over_seeds_that_all_runs_have():
    for others in ({1: 3, 2: 3, 4: 0}, {1: 1, 2: 1}):  # all have seeds 1 and 2; two are too few
        models = [*MODELS, *(model("random-2", seed, loss) for seed, loss in others.items())]
        chosen = table_of(models).query("chosen == 'yes'")["run"].unique().tolist()
        assert chosen == ["baseline-d0.1", "random-2-d0.1"]


def test_warnings_of_trainings_that_end_early_or_have_the_highest_dropout():
    for steps, cut, warnings in (((100, 200), 0, 1), ((50, 100), 1, 2)):
        table = table_of(steps=steps)
        assert row_of(table, "cut_short", "baseline")["value"] == cut
        assert len(regularisation.optimum(table)) == warnings
    models = [item | {"dev_loss": 9} if item["run"] == "baseline-d0.1" else item for item in MODELS]
    assert regularisation.optimum(table_of(models)) == []


def test_points_of_a_way_to_mask_begin_at_runs_without_masks():
    points = regularisation.by_share(table_of(), RUNS)
    assert points["run"].tolist() == list(LOSSES) and points["value"].iloc[0] == 0
    assert points["series"].tolist()[1:] == pytest.approx([np.nan, "random"], nan_ok=True)
    drawn = regularisation.by_way(points)
    assert drawn["way"].tolist() == ["random"] * 3 and drawn["share"].tolist() == [0, 0, 0.4]
    assert len(regularisation.by_way(points[:2])) == 2


def variants_of(names):
    """Return the variants of runs whose slopes are 1 and −2, half as often masked as not."""
    runs = {name: named_runs.RUNS[name] for name in names}
    losses = {"dev_loss": [3.0, 2.5], "step": [50, 100]}
    parts = [
        pd.DataFrame(
            {"pair": PAIR, "run": run, "seed": seed, "seconds": [place, place + 1]} | losses
        )
        for place, run in enumerate(names)
        for seed in (1, 2)
    ]
    scores = [score(run, seed, first=20.0) for run in names for seed in (1, 2)]
    history = pd.DataFrame(
        {"pair": PAIR, "run": names[-1], "seed": 1, "step": [50, 50, 100, 100], "updates": 50}
        | {"slope_mean": [1.0, -2.0, 1.0, 9.0], "slope_sd": [2.0, 0.0, 2.0, 0.0]}
        | {"masked": [0.25, 0.75, 1, 0], "known": [True, True, False, False]}
    )
    locked = pd.DataFrame({"pair": PAIR, "run": names[-1], "seed": [1, 1], "locked_ever": [1, 1]})
    return regularisation.variants(pd.concat(parts), scores, history, locked, runs)


def test_masks_of_harm_and_growth_are_weighted_by_masks():
    table = variants_of(["baseline", "random-2", "impt-2"])
    means = table[(table["run"] == "impt-2") & table["reference"].isna()].set_index("statistic")
    values = means["value"]
    assert values["harmful_share"] == 0.25 and values["heads_harmful_share"] == 0.5
    assert values["masked_growth"] == 0.25 * (2 - 1) + 0.75 * 2
    assert values["heads_growth"] == 0.5 * (2 - 1) + 0.5 * 2
    assert values["locked_ever"] == 1 and values["relative_seconds"] == 3
    assert (values["dev_loss"], values["seconds"], means["n"].iloc[0]) == (2.5, 3, 2)


ALIKE = [("impt-2", "random-2"), ("impt-2-rest3-d0.1", "random-2-rest3-d0.1")]
ALIKE += [("impt-2-signed-after9", "random-2-after9"), ("random-2-rest3", "random-2")]
ALIKE += [("random-2-rescaled", "random-2"), ("drophead-0.2", None)]


@pytest.mark.parametrize(("run", "random"), [*ALIKE, ("impt-2-after9", None)])
def test_a_run_is_compared_with_the_random_run_that_differs_in_the_choice_alone(run, random):
    names = ["baseline", "random-2", "random-3", "random-2-rest3", "random-2-rest3-d0.1"]
    names += ["random-2-after9"] * (random is not None)
    table = variants_of([name for name in names if name != run] + [run])
    rows = table[(table["run"] == run) & (table["statistic"] == "dev_loss")]
    against = rows.dropna(subset="reference_run").set_index("reference")["reference_run"].to_dict()
    assert against == {"baseline": "baseline"} | ({"random": random} if random else {})
