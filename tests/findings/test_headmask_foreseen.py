"""How well heads that are locked in were foretold, from hand-made files; numbers worked out."""

import numpy as np
import pytest
from captions import tell_what_is_covered
from headmask_files import HeadmaskFiles
from test_headmask_locked import add, history, tables

from headcount.findings.headmask.foreseen import SIGNS, area, foresee, foreseen_rows

FIRST = [(1, 1, 2), (-2, 2, 2), (0.5, 3, 4), (0.75, 4, 1), (-3, 5, 6), (0.75, 4, 8)]
SECOND = [(2, 1, 4), (-1, 1, 1), (0, 1, 1), (1, 2, 2), (3, 1, 3), (-4, 1, 5)]
LATER = [(0, 1, 1)] * 6
START = {"slope": 0.7, "size": 0.3, "importance": 0, "agreement": 0.8, "deviation": 0.7}
START |= {"masked": 0.2, "first_decoder_self": 1, "first_decoder": 0.8}
RUN = "impt-1"
FROM_START = "the first interval, locked in at any time after"


def one_lock(files, seed, first=FIRST):
    """Head 3, the decoder's self-attention, is locked in from update 60."""
    masks = {30: [0.5, 0.3, 0.2, 0, 0, 0], 60: [0.5, 0, 0, 0.5, 0, 0]}
    masks |= dict.fromkeys((90, 120), [0, 0, 0, 1, 0, 0])
    add(files, RUN, seed, masks, {30: first, 60: SECOND, 90: LATER, 120: LATER})


@pytest.fixture
def files(tmp_path):
    made = HeadmaskFiles(tmp_path)
    one_lock(made, 1)
    return made


def areas(rows, moment):
    return {row["foretold_by"]: row["roc_area"] for row in rows if row["moment"] == moment}


def test_every_sign_is_the_share_of_heads_below(files):
    """Head 3 of the first interval: 0.75 ± 4 of importance 1, never masked; the others beside it.

    Slopes 1, −2, 0.5, −3 lie above, below, below, below, and one is equal: 3.5 of 5. Sizes: 1.5 of
    5. Size ÷ importance 0.75 exceeds 0.5, 0.125, 0.5 and 0.09, not 1. Deviation: 3 and an equal
    one. Masks: two equal ones. Heads 4 and 5 are of the decoder's first layer, too.
    """
    rows = foresee(history(files))
    assert areas(rows, "start") == pytest.approx(START)
    assert list(areas(rows, "start")) == list(SIGNS)
    assert {row["lock_ins"] for row in rows} == {1}


def test_the_interval_before_and_the_heads_masked_most_in_it(files):
    rows = foresee(history(files))
    before = areas(rows, "before")
    # Slope 1 beside 2, −1, 0, 3, −4; importance 2 beside 4, 1, 1, 3, 5.
    assert (before["slope"], before["importance"]) == pytest.approx((0.6, 0.4))
    assert before["masked"] == pytest.approx((4 + 0.5) / 5)
    # Two heads, twice N, were masked half of the time: head 0 has slope 2 ± 1 of importance 4.
    among = {"slope": 0, "size": 0, "importance": 0, "agreement": 0.5, "deviation": 1}
    among |= {"masked": 0.5, "first_decoder_self": 1, "first_decoder": 1}
    assert areas(rows, "before_masked") == among


def test_beginnings_count_alike_and_locked_heads_are_no_rivals(tmp_path):
    made = HeadmaskFiles(tmp_path)
    both, one = [1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]
    high = [(9, 1, 1)] * 2 + [(0, 1, 1)] * 4
    # At 90 heads 0 and 1 are locked in, and no longer after it: nothing foretells head 2 from them.
    low = [(-9, 1, 1)] * 2 + [(-1, 1, 1)] + [(0, 1, 1)] * 3
    slopes = {30: high, 60: LATER, 90: low, 120: LATER, 150: LATER}
    add(made, "impt-2", 1, {30: [0] * 6, 60: both, 90: both, 120: one, 150: one}, slopes)
    rows = foresee(history(made))
    # Two beginnings that lie above all others, and one below all others.
    assert areas(rows, "before")["slope"] == pytest.approx(2 / 3)
    # Ever after the first interval heads 0, 1 and 2: two above and one equal to 3, 4 and 5.
    assert areas(rows, "start")["slope"] == pytest.approx((1 + 1 + 0.5) / 3)
    counts = {row["moment"]: row["lock_ins"] for row in rows}
    assert (counts["start"], counts["before"]) == (3, 3)


def test_heads_locked_in_at_once_are_neither_foretold_nor_others(tmp_path):
    """Head 0 is in the first interval, head 3 later; beside it heads 1, 2, 4 and 5 alone.

    Slope 0.75 exceeds −2, 0.5 and −3, and equals 0.75: 3.5 of 4. With head 0, of slope 1, it were
    3.5 of 5.
    """
    made = HeadmaskFiles(tmp_path)
    masks = {60: [1, 0, 0, 0, 0, 0], 120: [0, 0, 0, 1, 0, 0]}
    add(made, RUN, 1, masks, {60: FIRST, 120: LATER})
    rows = [row for row in foresee(history(made)) if row["moment"] == "start"]
    assert areas(rows, "start")["slope"] == pytest.approx(3.5 / 4)
    assert {row["lock_ins"] for row in rows} == {1}


def test_of_heads_masked_equally_often_the_first_count(tmp_path):
    """Heads 1, 2, 4 and 5 are masked as often; the two that count are 1 and 2, of the encoder.

    The one that will be locked in is among them, of slope −2 beside 0.5.
    """
    made = HeadmaskFiles(tmp_path)
    masks = {30: [0, 0.3, 0.3, 0, 0.3, 0.3], 90: [0, 1, 0, 0, 0, 0]}
    add(made, RUN, 1, masks, {30: FIRST, 90: LATER})
    assert areas(foresee(history(made)), "before_masked")["slope"] == 0
    assert [head.kind for head in history(made).heads[:3]] == ["enc_self"] * 3


def test_heads_that_no_update_masked_are_not_among_those_masked_most(tmp_path):
    """Heads 4 and 5 alone were masked: 5 is locked in then, of slope 0.75 beside −3.

    With N of 2, four would be these two and, masked in no update, heads 0 and 1, of slope 1 and −2.
    """
    made = HeadmaskFiles(tmp_path)
    masks = {30: [0, 0, 0, 0, 0.5, 0.5], 90: [0, 0, 0, 0, 0, 1]}
    add(made, "impt-2", 1, masks, {30: FIRST, 90: LATER})
    assert areas(foresee(history(made)), "before_masked")["slope"] == 1


def test_a_layer_foretells_all_only_if_it_is_what_is_locked_in():
    """Of a layer of two heads one is locked in: above two of the three others, equal to one."""
    layer, one = np.array([1.0, 1, 0, 0]), np.array([1, 0, 0, 0], dtype=bool)
    assert area(layer, one, ~one) == pytest.approx((2 + 0.5) / 3)
    assert area(layer, layer == 1, layer == 0) == 1


def test_a_spared_layer_and_a_ranking_with_a_sign_have_fewer_signs(tmp_path):
    made = HeadmaskFiles(tmp_path)
    masks = {30: [0] * 6, 90: [1, 0, 0, 0, 0, 0]}
    add(made, "impt-1-spare_dec_self", 1, masks, {30: FIRST, 90: LATER})
    found = areas(foresee(history(made)), "start")
    assert set(found) == set(SIGNS) - {"first_decoder_self"}
    assert found["slope"] == 1  # the head that is spared is no rival: −2, 0.5, −3, 0.75
    add(made, "impt-1-signed", 1, masks, {30: FIRST, 90: LATER})
    assert set(areas(foresee(history(made)), "start")) == set(SIGNS) - {"agreement"}


def test_held_and_later_updates_foretell_nothing(tmp_path):
    made = HeadmaskFiles(tmp_path)
    on = [1, 0, 0, 0, 0, 0]
    masks = {30: [0] * 6, 60: [0, 0, 0, 0, 0, 1], 90: [0.2] * 5 + [0], 140: on}
    add(made, "impt-1-held30-after30", 1, masks, {60: SECOND, 90: FIRST, 140: LATER})
    found = areas(foresee(history(made)), "start")
    # From the third interval: head 0 of slope 1 above −2, 0.5, 0.75, −3 and 0.75; of importance 2
    # above 1 and equal to 2, below 4, 6 and 8.
    assert found["slope"] == 1 and found["importance"] == pytest.approx(1.5 / 5)


def test_a_mean_over_seeds_with_its_interval(files):
    # In the second seed the slope of head 3 is larger than −2 and −3, and equal to 0.5.
    one_lock(files, 2, [*FIRST[:3], (0.5, 4, 1), *FIRST[4:]])
    table = tables(files)["headmask_foreseen"]
    rows = table.tidy.set_index(["seed", "moment", "foretold_by"])
    assert rows.loc[(2, "start", "slope"), "roc_area"] == pytest.approx(0.5)
    over = rows.loc[("", "start", "slope")]
    # Of 0.7 and 0.5: 0.6, standard error 0.1, t of one degree of freedom 12.7062: −0.67 to 1.87.
    assert over["roc_area"] == pytest.approx(0.6) and over[["lock_ins", "seeds"]].tolist() == [2, 2]
    assert over[["roc_area_low", "roc_area_high"]].tolist() == [0, 1]
    # Both are 1: equal areas do not tell how far others lie apart.
    equal = rows.loc[("", "start", "first_decoder_self")]
    assert equal[["roc_area", "roc_area_low", "roc_area_high"]].tolist() == [1, "", ""]
    shown = table.shown.set_index("measured in").loc[FROM_START]
    assert shown["slope"] == "0.60 (0.00 to 1.00)" and shown["lock-ins"] == "2"
    assert shown["seeds"] == "2 of 2"
    assert len(table.shown) == 3


def test_a_seed_without_a_lock_in_leaves_no_interval(files):
    one_lock(files, 2, [*FIRST[:3], (0.5, 4, 1), *FIRST[4:]])
    add(files, RUN, 3, {30: [0.5, 0, 0, 0, 0, 0]}, {30: FIRST})
    table = tables(files)["headmask_foreseen"]
    over = table.tidy.set_index(["seed", "moment", "foretold_by"]).loc[("", "start", "slope")]
    assert over["roc_area"] == pytest.approx(0.6)  # of 0.7 and 0.5
    assert over[["roc_area_low", "roc_area_high", "seeds"]].tolist() == ["", "", 2]
    assert set(table.shown["seeds"]) == {"2 of 3"}


def test_signs_that_were_found_on_a_training_are_exploratory(tmp_path):
    made = HeadmaskFiles(tmp_path)
    for seed, slope in ((3, 1), (4, 2), (7, 3)):
        key = ("synthetic.en-art", RUN, seed)
        made.runs.append(key)
        made.masks(key, {30: [0.5, 0, 0, 0.5, 0, 0], 90: [0, 0, 0, 1, 0, 0]})
        made.slopes(key, {30: [*FIRST[:3], (slope, 1, 1), *FIRST[4:]], 90: LATER})
    table = tables(made)["headmask_foreseen"]
    found = table.tidy[table.tidy["moment"] == "start"].set_index(["foretold_by", "seed"])
    told = {sign: rows["exploratory"].tolist() for sign, rows in found.groupby(level=0)}
    # The self-attention was found on seeds 1 to 3, its whole layer on 1 to 6; then over seeds.
    assert told["first_decoder_self"] == ["yes", "no", "no", "yes"]
    assert told["first_decoder"] == ["yes", "yes", "no", "yes"]
    assert told["slope"] == ["no"] * 4
    # Heads 4 and 5 are of the layer, too: above 0, 1 and 2, equal to 4 and 5.
    shown = table.shown.set_index("measured in").loc[FROM_START]
    assert shown["in the decoder's first layer"] == "0.80 (exploratory)"


def test_a_training_of_which_nothing_is_told_has_one_row(tmp_path):
    made = HeadmaskFiles(tmp_path)
    add(made, "baseline", 1, {})
    add(made, "random-1", 1, {30: [0] * 6, 90: [1, 0, 0, 0, 0, 0]})
    add(made, RUN, 1, {30: [0.5, 0, 0, 0, 0, 0]}, {30: FIRST})
    table = tables(made)["headmask_foreseen"]
    assert table.tidy["run"].tolist() == ["baseline", "random-1", RUN]
    assert set(table.tidy["moment"]) == {""} and set(table.shown["measured in"]) == {"–"}
    assert foreseen_rows([history(made)])["roc_area"].tolist() == [""]


def test_an_area_counts_equal_values_half():
    locked = np.array([1, 1, 0, 0], dtype=bool)
    assert area(np.array([2.0, 1, 1, 0]), locked, ~locked) == (2 + 1.5) / 4


def test_captions(files):
    assert tell_what_is_covered(tables(files)) == []
