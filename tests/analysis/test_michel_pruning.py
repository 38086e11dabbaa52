"""Curves of pruning: how far they hold, their areas, and the order of heads."""

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.frames import Runs
from headcount.analysis.tables.michel import pruning as module
from headcount.base.errors import UserError
from headcount.base.settings.heads import AblationSettings
from headcount.base.settings.runs import PrunedSettings

MODEL = {"pair": "a-b", "run": "baseline", "seed": 1}
NONE = pd.DataFrame()
SETTINGS = {"ablation": AblationSettings(normalise="layer_l2")}
RAW = {"ablation": AblationSettings(normalise="none")}


def steps(scores, p, order="importance", scope="all", draw=np.nan, heads=4):
    """Return the rows of one curve in equal steps."""
    count = len(scores) - 1
    rows = pd.DataFrame({"index": range(count + 1), "score": map(float, scores), "p": p})
    rows["delta"] = rows["score"] - rows["score"][0]
    rows["heads_masked"] = rows["index"] * heads // count
    names = {"test_set": "t", "scope": scope, "order": order, "draw": draw, "metric": "bleu"}
    ends = {"delta_low": rows["delta"] - 1, "delta_high": rows["delta"] + 1}
    return rows.assign(**MODEL | names | ends)


def three_orders():
    """Return a curve by importance, one head per layer, and two random orders."""
    alone = steps([40, 10], [1, 0.001], "one_per_layer", heads=3)[1:].assign(index=0)
    random = [steps(s, 0.5, "random", draw=n) for n, s in enumerate([[40, 20, 0], [40, 30, 2]])]
    return pd.concat([steps([40, 39, 30, 20, 1], [1, 0.3, 0.04, 0.2, 0.01]), alone, *random])


def test_percent_of_steps_and_importance_as_a_share_of_the_layers_norm():
    points = module.profile(three_orders(), NONE)
    assert points["percent"].tolist() == [0, 25, 50, 75, 100, 75, 0, 50, 100, 0, 50, 100]
    kind = steps([40, 0], [1, 1], scope="enc_self")
    assert module.profile(NONE, pd.concat([three_orders(), kind]))["scope"].unique().tolist() == [
        "all"
    ]
    table = pd.concat([heads([3.0, 4.0]), heads([0.0, 0.0]).assign(layer=1)])
    keys = list(MODEL)
    assert module.as_compared(table, keys, SETTINGS).tolist() == [0.6, 0.8, 0, 0]
    assert module.as_compared(table, keys, RAW).tolist() == [3, 4, 0, 0]


def test_a_curve_holds_until_its_first_significant_loss():
    table = module.judged(module.profile(three_orders(), NONE)).set_index(["order", "draw"])
    row = table.iloc[0]
    assert row[["last_ok_heads", "last_ok_percent", "last_ok_delta", "last_ok_p"]].tolist() == [
        1,
        25,
        -1,
        0.3,
    ]
    assert row[
        ["first_loss_heads", "first_loss_percent", "first_loss_low", "first_loss_high"]
    ].tolist() == [2, 50, -11, -9]
    assert row[["retained_percent", "step", "heads"]].tolist() == [25, 25, 4]
    alone = table.loc["one_per_layer"].iloc[0]
    assert (
        alone["first_loss_percent"] == 75
        and alone[["last_ok_heads", "step", "retained_percent"]].isna().all()
    )
    assert table.loc["random", "last_ok_percent"].tolist() == [100, 100]
    points = module.profile(steps([40, 50, 37, 40], [1, 0.001, 0.2, 0.9]), NONE)
    (row,) = module.judged(points).to_dict("records")
    assert row["last_ok_percent"] == 100 and np.isnan(row["first_loss_heads"])
    assert row["retained_percent"] == pytest.approx(100 / 3)


def test_curves_stand_beside_the_paper_of_the_same_metric():
    points = module.profile(three_orders(), NONE)
    facts = [MODEL | {"sentences": {"t": 50, "dev": 60}}]
    table = module.pruning(points, facts, [])
    assert table["size"].tolist()[:4] == [50] * 4
    paper = table[table["source"] == "paper"]
    assert paper["retained_percent"].tolist() == [20, 10, 50, 60, 30, 20]
    table = module.pruning(points.assign(metric="accuracy"), [], [MODEL | {"pairs": {"t": 9}}])
    paper = table[table["source"] == "paper"]
    assert paper[["last_ok_percent", "size"]].fillna(0).to_numpy().tolist() == [[40, 0]]


def test_printed_areas_are_means_over_equal_steps():
    columns = ["scope", "order", "area", "low", "high", "reference_run", "delta"]
    ours = pd.DataFrame([("all", "importance", 20.0, 19.0, 21.0, None, np.nan)], columns=columns)
    points = module.profile(three_orders(), NONE)
    table = module.areas(ours.assign(**MODEL, test_set="t"), NONE, points)
    single = [36.05, 35.15, 33.82, 20.66, 8.57, 6.31, 3.16, 1.24, 0.33, 0.09, 0]
    row = table[(table["order"] == "single") & (table["source"] == "paper")].iloc[0]
    assert row["area"] == pytest.approx((sum(single) - single[0] / 2 - single[-1] / 2) / 10)
    # Its last step scores 0, so f is the score over 36.05, and never above 1.
    assert row["cpr"] == pytest.approx(row["area"] / single[0]) == 1 - row["cmd"]
    points = points.assign(metric="accuracy")
    assert len(module.areas(NONE, ours.assign(**MODEL, test_set="t"), points)) == 1


def circuits(*curves):
    """Return CPR and CMD by scope and order."""
    table = module.profile(pd.concat(curves), NONE)
    kept = 1 - table["heads_masked"] / table["scope_heads"]
    table = module.circuit_areas(table.assign(kept=kept))
    return {(row.scope, row.order): (row.cpr, row.cmd) for row in table.itertuples()}


def test_circuit_areas_by_hand():
    """Three points each; 1 of 4 heads is masked first, so 0.75 and 1 are kept."""
    uneven = steps([40, 30, 0], 1).assign(heads_masked=[0, 1, 4])
    over = steps([40, 50, 0], 1, order="single").assign(heads_masked=[0, 1, 4])
    floor = steps([40, 38, 20], 1, scope="enc_self")
    harmful = steps([40, 41, 42], 1, scope="dec_self")
    found = circuits(uneven, over, floor, harmful)
    # f = 1, 0.75, 0: 0.25 · 0.875 + 0.75 · 0.375.
    assert found["all", "importance"] == pytest.approx((0.5, 0.5))
    # f = 1, 1.25, 0: 0.25 · 1.125 + 0.75 · 0.625, and 0.25 · 0.125 + 0.75 · 0.625.
    assert found["all", "single"] == pytest.approx((0.75, 0.5))
    # Without the encoder's heads 20 are left: f = 1, 0.9, 0 at 1, 0.5, 0.
    assert found["enc_self", "importance"] == pytest.approx((0.7, 0.3))
    assert np.isnan(found["dec_self", "importance"]).all()


def test_circuit_areas_of_random_orders_are_means():
    """f = 1, 0.5, 0 has 0.5; f = 1, 28/38, 0 has half of 1 + 28/38 over two equal steps."""
    second = (1 + 2 * 28 / 38) / 4
    cpr, cmd = circuits(three_orders())["all", "random"]
    assert (cpr, cmd) == pytest.approx(((0.5 + second) / 2, 1 - (0.5 + second) / 2))
    assert ("all", "one_per_layer") not in circuits(three_orders())


def test_learnt_masks_stand_beside_the_curves_of_the_model_that_they_started_from():
    found = [PrunedSettings(method="subset", heads=number) for number in (1, 2)]
    runs = Runs({run.label: run for run in found})
    kept = zip(runs, ([0, 0, 0, 1.0], [0, 1.0, 1.0, 0]), strict=True)
    gates = pd.concat([heads(left, statistic="gate").assign(run=name) for name, left in kept])
    scores = {"baseline": 50.0, "subset-all-k1": 45.0, "subset-all-k2": 48.0}
    facts = [
        MODEL | {"run": run, "scores": [{"test_set": t, "metric": "bleu", "score": score}]}
        for run, score in scores.items()
        for t in ("t", "other")
    ]
    points = module.profile(three_orders(), NONE)
    table = module.curves_beside_masks(points, runs, gates, facts[:2], facts[2:])
    masks = table[table["order"] == "subset"]
    assert masks[["run", "test_set"]].drop_duplicates().to_numpy().tolist() == [["baseline", "t"]]
    assert masks[["percent", "score"]].to_numpy().tolist() == [[0, 50], [50, 48], [75, 45]]
    drawn = module.drawn_curves(table, percent=True).query("order == 'subset'")
    assert drawn["score"].tolist() == [100, 96, 90]
    assert module.learnt_masks(table) and not module.learnt_masks(table[table["order"] != "subset"])
    plain = module.curves_beside_masks(points, Runs(), gates.iloc[:0], [], [])
    pd.testing.assert_frame_equal(plain, module.curves(points))


def test_drawn_curves_are_percent_of_the_score_with_all_heads():
    frame = module.curves(module.profile(three_orders(), NONE), where="scope == 'all'")
    drawn = module.drawn_curves(frame)
    ours = drawn[:5]
    assert ours["score"].tolist() == [100, 97.5, 75, 50, 2.5]
    assert ours["low"].tolist()[-1] == 0 and ours["high"].tolist()[-1] == 5
    assert (drawn["run"] == "paper").sum() == 6 * 11
    assert drawn.groupby("run", sort=False)["whole"].first().tolist() == [40, 36.05]
    assert module.drawn_curves(frame, percent=False)["score"].tolist()[:5] == [40, 39, 30, 20, 1]


def heads(values, **names):
    rows = [("enc_self", 0, n, value) for n, value in enumerate(values)]
    return pd.DataFrame(rows, columns=["kind", "layer", "head", "value"]).assign(**MODEL, **names)


def test_heads_are_listed_in_the_order_of_pruning_and_of_equal_ones_the_last_goes_first():
    points = steps([40, 39, 10], [1, 0.5, 0.001])
    points["heads"] = ["", "enc_self.0.0 enc_self.0.2", "enc_self.0.0 enc_self.0.2 enc_self.0.1 x"]
    points["heads"] = points["heads"].replace("", np.nan)
    effect = {"test_set": "t", "order": "single", "delta": 0.0, "delta_low": 0.0}
    masked = heads([0, 0, 0]).assign(**effect, delta_high=0.0, p=1.0)
    changes = pd.concat([heads([1, 2, 3], statistic=f"loss_{end}") for end in ("change", "rise")])
    importance = heads([1.0, 2.0, 1.0], statistic="importance")
    table = module.removal(importance, changes, masked, module.profile(points, NONE), SETTINGS)
    assert table["address"].tolist() == ["enc_self.0.2", "enc_self.0.0", "enc_self.0.1"]
    assert table["rank"].tolist() == [1, 2, 3] and table["removed_at_step"].tolist() == [2, 2, 4]
    assert table["before_loss"].tolist() == ["yes", "yes", "no"]
    assert table["loss_rise"].tolist() == [3, 1, 2]


def profiles_of_training():
    falling = steps([1, 1, 0], [1, 1, 1]).assign(update=10)
    return pd.concat([falling, steps([40, 20, 0], 1).assign(update=20)], ignore_index=True)


def test_profiles_and_importance_are_compared_with_a_line_and_with_the_last_checkpoint():
    importance = pd.concat([heads([1.0, 2, 3], update=10), heads([3.0, 2, 1], update=20)])
    table = module.training(module.checkpoints(profiles_of_training()), importance, RAW)
    early, late = table[table["source"] == "ours"].to_dict("records")
    assert np.isnan(early["kept_20"]) and late["kept_20"] == 80
    assert late["r_squared"] == pytest.approx(1) and late["end_mass"] == 0
    assert early["spearman_with_last"] == -1 and late["spearman_with_last"] == 1
    assert early["cv"] == pytest.approx((2 / 3) ** 0.5 / 2)
    assert (table["source"] == "paper").sum() == 16
    with pytest.raises(UserError, match="update 20"):
        module.training(
            module.checkpoints(profiles_of_training()), importance[importance["update"] == 10], RAW
        )
    points = module.checkpoints(profiles_of_training())
    assert points["kept"].fillna(-1).tolist() == [-1, -1, -1, 100, 50, 0]
    assert points["kept_low"].tolist()[3:] == [97.5, 47.5, 0]
