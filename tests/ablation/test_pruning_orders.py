"""In which order heads are pruned, by hand; areas under curves, by hand."""

import numpy as np
import pytest

from headcount.ablation.pruning_orders import Curve, all_but_best, importance_sets, list_curves
from headcount.ablation.pruning_profile import AREA_COLUMNS, area_rows
from headcount.base.addresses import HeadGrid
from headcount.base.ranking import step_sets
from headcount.base.settings.heads import AblationSettings
from headcount.heads.measures_files import Measured
from headcount.scoring.bootstrap import Difference, interval

# Flat: enc_self.0 has 0 and 1, enc_self.1 has 2, dec_self.0 has 3, 4 and 5, dec_enc.0 has 6 and 7.
GRID = HeadGrid({"enc_self": (2, 1), "dec_self": (3,), "dec_enc": (2,)})
VALUES = np.array([0.5, 3.0, 1.0, 0.2, 4.0, 0.1, 2.0, 0.3])
EFFECTS = np.array([0.0, -4.0, 0.5, -0.1, -2.0, -0.2, -9.0, -0.3])


def curves(**settings) -> dict[tuple, list[tuple[int, ...]]]:
    """Sets by scope, order and draw."""
    asked = AblationSettings(**{"steps": 4, "draws": 2, "normalise": "none", **settings})
    found = list_curves(GRID, lambda silent: VALUES, EFFECTS, asked, seed=5)
    return {(curve.scope, curve.order, curve.draw): curve.sets for curve in found}


def test_steps_are_rounded_up():
    # 3 heads in 4 steps: 0.75, 1.5, 2.25 and 3.
    assert step_sets([7, 2, 5], 4) == [(), (7,), (2, 7), (2, 5, 7), (2, 5, 7)]
    assert step_sets([7, 2, 5], 1) == [(), (2, 5, 7)]


def test_the_least_important_heads_go_first():
    found = curves()
    assert found["all", "importance", None] == [
        (),
        (3, 5),  # 0.2 and 0.1
        (0, 3, 5, 7),
        (0, 2, 3, 5, 6, 7),
        tuple(range(8)),
    ]
    assert found["enc_self", "importance", None] == [(), (0,), (0, 2), (0, 1, 2), (0, 1, 2)]
    assert found["dec_enc", "importance", None] == [(), (7,), (7,), (6, 7), (6, 7)]


def test_importance_that_is_not_normalised_is_an_order_of_its_own():
    found = curves(normalise="layer_l2")
    # Within their layers 1 has 0.99 of all, 2 is alone and 4 has 0.999: 1 goes before 2.
    assert found["all", "importance", None][3] == (0, 1, 3, 5, 6, 7)
    assert found["all", "importance_raw", None][3] == (0, 2, 3, 5, 6, 7)
    assert ("all", "importance_raw", None) not in curves()


def test_signed_importance_is_an_order_of_its_own_where_asked():
    """Head 4 harms most, then 1; 5, of importance 0.1, is the third to go, and 3 the fourth."""
    values = np.array([0.5, -3.0, 1.0, 0.2, -4.0, 0.1, 2.0, 0.3])
    asked = AblationSettings(steps=4, draws=0, normalise="none")
    found = list_curves(GRID, lambda silent: VALUES, EFFECTS, asked, 5, values)
    sets = {curve.order: curve.sets for curve in found if curve.scope == "all"}
    assert sets["importance_signed"][:3] == [(), (1, 4), (1, 3, 4, 5)]
    assert sets["importance"][:3] == [(), (3, 5), (0, 3, 5, 7)]
    assert ("all", "importance_signed", None) not in curves()


def test_each_measure_is_an_order_and_fisher_information_is_rearranged_too():
    """By what is below 0 first; where pruned heads give means the order is importance's."""
    shapley = np.array([0.5, -3.0, 1.0, 0.2, -4.0, 0.1, 2.0, 0.3])
    fisher = np.diag([5.0, 6.0, 7.0, 1.0, 2.0, 3.0, 8.0, 9.0])
    # Of dec_self 3 and 4 go first and add ½ (1 + 2 + 2 · 0.9); 4 and 5 cancel: ½ (2 + 3 − 4.8).
    fisher[3, 4] = fisher[4, 3] = 0.9
    fisher[4, 5] = fisher[5, 4] = -2.4
    measured = Measured({"fisher": np.diagonal(fisher), "shapley": shapley}, fisher)
    asked = AblationSettings(steps=4, draws=0, normalise="none")
    found = list(list_curves(GRID, lambda _: VALUES, EFFECTS, asked, 5, measured=measured))
    plain = list(list_curves(GRID, lambda _: VALUES, EFFECTS, asked, 5))
    assert found[: len(plain)] == plain
    added = {curve.order: curve for curve in found[len(plain) :]}
    assert list(added) == ["fisher", "fisher_rearranged", "shapley", "importance_mean"]
    assert added["fisher"].sets[:3] == [(), (3, 4), (0, 3, 4, 5)]
    assert added["fisher_rearranged"].sets[:3] == [(), (4, 5), (0, 3, 4, 5)]
    assert added["shapley"].sets[:3] == [(), (1, 4), (1, 3, 4, 5)]
    assert added["importance_mean"].sets == plain[0].sets
    assert [curve.order for curve in found if curve.filled] == ["importance_mean"]


def test_by_effect_the_head_that_harms_goes_first():
    # 2 gains 0.5, 0 nothing, then 3, 5 and 7 lose a little.
    assert curves()["all", "single", None][:3] == [(), (0, 2), (0, 2, 3, 5)]


def test_random_orders_grow_and_differ():
    found = curves(steps=8, draws=3)
    drawn = [found["all", "random", draw] for draw in (1, 2, 3)]
    for sets in drawn:
        assert [len(heads) for heads in sets] == list(range(9))
        assert all(set(a) < set(b) for a, b in zip(sets, sets[1:], strict=False))
    assert len({tuple(sets) for sets in drawn}) == 3 and curves(steps=8, draws=3) == found
    assert not [key for key in curves(draws=0) if key[1] == "random"]


def test_one_head_stays_in_every_layer():
    # The best are 1 (3.0), 2 alone, 4 (4.0) and 6 (2.0).
    assert all_but_best(GRID, VALUES) == (0, 3, 5, 7)
    assert curves()["all", "one_per_layer", None] == [(0, 3, 5, 7)]


def test_ranked_anew_after_each_step():
    """Once 5 and 3 are gone, heads 1 and 4 have become useless."""

    def rank(silent):
        values = VALUES.copy()
        if silent == (3, 5):
            values[[1, 4]] = 0.01, 0.02
        values[list(silent)] = 0
        return values

    # Then, by the values they began with, 7 (0.3) and 0 (0.5).
    assert importance_sets(range(8), rank, 4)[:4] == [(), (3, 5), (1, 3, 4, 5), (0, 1, 3, 4, 5, 7)]


def areas(found, scores, filled=None) -> list[dict]:
    """Rows of areas from the scores of sets of heads."""
    ways = {
        way: {heads: Difference(*[0] * 5, "", np.array(row)) for heads, row in (rows or {}).items()}
        for way, rows in ((False, scores), (True, filled))
    }
    return [
        dict(zip(AREA_COLUMNS, row, strict=True)) for row in area_rows("t", found, ways, "bleu")
    ]


def test_areas_by_hand():
    """Two columns of BLEU: the test set and two resamples of it."""
    scores = {
        (): [40.0, 42, 38],
        (0,): [30.0, 34, 26],
        (1,): [20.0, 20, 20],
        (2,): [10.0, 14, 6],
        (0, 1): [0.0, 2, 0],
    }
    found = [
        Curve("all", "importance", None, [(), (0,), (0, 1)]),
        Curve("all", "random", 1, [(), (1,), (0, 1)]),
        Curve("enc_self", "importance", None, [(), (0,)]),
        Curve("all", "one_per_layer", None, [(0,)]),  # no curve
    ]
    rows = areas(found, scores)
    assert [(row["scope"], row["order"]) for row in rows] == [
        ("all", "importance"),
        ("all", "random"),
        ("enc_self", "importance"),
    ]
    # (40 + 30) / 2 and (30 + 0) / 2 have the mean 25; (42 + 34) / 2 and (34 + 2) / 2 have 28;
    # (38 + 26) / 2 and 26 / 2 have 22.5. Random: (40 + 20) / 2 and 20 / 2 have 20.
    assert (rows[0]["area"], rows[0]["reference_run"], rows[0]["delta"]) == (25, "", "")
    assert (rows[0]["low"], rows[0]["high"]) == (22.5, 28)
    assert (rows[1]["area"], rows[1]["reference_run"], rows[1]["delta"]) == (
        20,
        "all/importance",
        -5,
    )
    # Random's resamples: (42 + 20) / 2, (20 + 2) / 2 make 21; (38 + 20) / 2, 20 / 2 make 19.5.
    # Minus 28 and 22.5: -7 and -3.
    assert (rows[1]["delta_low"], rows[1]["delta_high"]) == interval(np.array([-7.0, -3.0]))
    assert rows[2]["area"] == 35 and rows[2]["reference_run"] == ""  # nothing to hold it against


def test_areas_of_curves_with_means_have_scores_of_their_own():
    """(40 + 10) / 2 with zeros, (40 + 30) / 2 with means."""
    scores = {(): [40.0, 40.0], (0,): [10.0, 10.0]}
    filled = {(): [40.0, 40.0], (0,): [30.0, 20.0]}
    found = [Curve("all", "importance", None, [(), (0,)])]
    found += [Curve("all", "importance_mean", None, [(), (0,)], filled=True)]
    first, second = areas(found, scores, filled)
    assert (first["area"], second["area"], second["delta"]) == (25, 35, 10)
    assert second["delta_low"] == second["delta_high"] == 5


def test_random_orders_that_differ_make_the_interval_wide():
    # No sentence makes a difference: areas are 10 and 40 on every resample. Of two draws with
    # repetition a quarter are the first twice, a quarter the second twice.
    scores = {(): np.full(401, 20.0), (0,): np.full(401, 0.0), (1,): np.full(401, 60.0)}
    found = [Curve("all", "random", draw, [(), (draw - 1,)]) for draw in (1, 2)]
    (row,) = areas(found, scores)
    assert (row["area"], row["low"], row["high"]) == (25, 10, 40)


@pytest.mark.parametrize("draws", [0, 1])
def test_every_curve_ends_with_all_heads_of_its_scope(draws):
    sizes = {"all": 8, "enc_self": 3, "dec_self": 3, "dec_enc": 2}
    for (scope, order, _), sets in curves(draws=draws, steps=3).items():
        assert order == "one_per_layer" or len(sets[-1]) == sizes[scope]
