"""Heads that were locked in, from hand-made files; expected numbers are worked out beside them."""

import math

import numpy as np
import pytest
from captions import tell_what_is_covered
from chapters import make_tables
from headmask_files import ADDRESSES, MODEL, HeadmaskFiles
from locked_runs import HELD, IMPT, PAIR, SETTINGS, add, locked_runs

from headcount.base.errors import UserError
from headcount.base.random_streams import Stream
from headcount.findings.headmask.locked_evidence import predict
from headcount.findings.headmask.locked_in import histories, read_slopes, spells
from headcount.findings.masked_training import read_masks
from headcount.findings.results import read_runs, run_of
from headcount.findings.significance import Overlap, drawn_p, overlap_p


@pytest.fixture
def files(tmp_path):
    return locked_runs(tmp_path)


def tables(files):
    return make_tables("headmask", files.lists(), SETTINGS)


def history(files, place=-1):
    """What one training recorded."""
    listed = files.lists()
    path = listed["masks"][place]
    run = read_runs(listed["trained_runs"])[run_of(path)[1]]
    masks, slopes = read_masks([path]), read_slopes(listed["slopes"])
    return histories({run_of(path): run}, MODEL.grid.heads(), masks, slopes)[0]


def rows(files):
    table = tables(files)["headmask_locked"].tidy
    return {(row["run"], row["seed"]): row for row in table.to_dict("records")}


def cells(row, *columns):
    return [row[column] for column in columns]


def test_how_many_heads_from_when_and_for_how_long(files):
    found = rows(files)
    columns = ("n", "held", "locked_ever", "locked_at_end", "locked_from", "locked_longest")
    # Held updates do not count: head 0 from 40 to 100, head 2 from 40 to 130.
    assert cells(found[HELD, 1], *columns) == [2, 40, 2, 1, 40, 90]
    assert cells(found[HELD, 2], *columns) == [2, 40, 2, 2, 40, 90]
    assert cells(found[IMPT, 1], *columns) == [2, 0, 2, 2, 30, 60]
    assert cells(found["baseline", 1], *columns) == [0, 0, 0, 0, "", ""]
    assert list(found) == [("baseline", 1), (HELD, 1), (HELD, 2), (HELD, ""), (IMPT, 1)]


def test_slopes_of_locked_heads_and_of_the_others_then(files):
    row = rows(files)[HELD, 1]
    # Head 0: slopes 4, 2 in equal intervals; head 2: 1, −1, 3. Means 3 and 1.
    assert row["locked_slope"] == pytest.approx(2)
    # Sizes 3 of 4, and (1 + 1 + 3) / 3 of (2 + 2 + 1) / 3.
    assert row["locked_slope_ratio"] == pytest.approx((3 / 4 + 1) / 2)
    assert row["others_slope"] == pytest.approx(0.25)  # median of 0.1 … 0.4; importance is 1
    assert row["others_slope_ratio"] == pytest.approx(0.25)
    assert cells(row, "locked_slope_sd", "others_slope_sd") == [2, 5]
    assert rows(files)[IMPT, 1]["locked_slope"] == ""  # measured no slopes


def test_signed_importance_has_no_ratio(tmp_path):
    made = HeadmaskFiles(tmp_path)
    on = [1, 1, 0, 0, 0, 0]
    add(made, "impt-2-signed", 1, {60: on}, {60: [(-2, 1, 2)] * 2 + [(1, 1, -1)] * 4})
    (row,) = rows(made).values()
    assert cells(row, "locked_slope", "others_slope") == [-2, 1]
    assert cells(row, "locked_slope_ratio", "others_slope_ratio") == ["", ""]


def test_held_heads_foretell_the_locked_ones(files):
    found = rows(files)
    columns = [f"held_{what}" for what in ("both", "expected", "precision", "recall", "p")]
    # Two of six held, two locked: none in common in 6 of 15 cases, one in 8, two in 1.
    assert cells(found[HELD, 1], *columns) == pytest.approx([1, 2 / 3, 0.5, 0.5, 9 / 15])
    assert cells(found[HELD, 2], *columns) == pytest.approx([2, 2 / 3, 1, 1, 1 / 15])
    over = found[HELD, ""]
    # Three in common or more: 1 and 2, 2 and 1, or 2 and 2.
    assert over["held_p"] == pytest.approx((8 + 8 + 1) / 225)
    assert cells(over, *columns[:-1]) == pytest.approx([1.5, 2 / 3, 0.75, 0.75])
    assert cells(over, "seeds", "seeds_locked") == [2, 2]
    assert cells(over, "locked_ever_low", "locked_ever_high") == ["", ""]  # equal: no spread
    assert over["locked_slope_low"] == ""
    shown = tables(files)["headmask_locked"].shown
    assert shown["foretold by the hold"].tolist() == [
        *("–", "1, 50 % of them (by chance 0.667; p 0.60)"),
        *("2, 100 % of them (by chance 0.667; p 0.067)",),
        *("1.5, on average 75 % of them (by chance 0.667; p 0.076)", "–"),
    ]


def test_forecasts_whose_heads_chance_draws_alone_have_a_p(files):
    row = rows(files)[IMPT, 1]
    # Held heads are drawn one by one, layers as a whole. Heads that masks pick are neither: what
    # masks foretell is an area of headmask_foreseen, which has no p.
    assert [name for name in row if name.endswith("_p")] == ["held_p", "place_p"]
    assert row["held_both"] == ""


def test_seeds_that_lock_nothing_in_leave_no_interval_of_slopes(tmp_path):
    made = HeadmaskFiles(tmp_path)
    on, off = [1, 1, 0, 0, 0, 0], [0.4] * 6
    for seed, slope in ((1, 1), (2, 3), (3, 5)):
        add(made, IMPT, seed, {60: on}, {60: [(slope, 1, 2)] * 2 + [(0, 1, 1)] * 4})
    over = rows(made)[IMPT, ""]
    # Of 1, 3 and 5: mean 3, deviation 2, and Student's 4.303 at two degrees of freedom.
    reach = 4.303 * 2 / math.sqrt(3)
    ends = ("locked_slope_low", "locked_slope_high")
    assert cells(over, *ends) == pytest.approx([3 - reach, 3 + reach], rel=1e-3)
    add(made, IMPT, 4, {60: off}, {60: [(0, 1, 1)] * 6})
    over = rows(made)[IMPT, ""]
    # The mean is of the three that lock heads in, as seeds_locked says; the interval would be too.
    assert cells(over, "seeds", "seeds_locked", "locked_slope") == [4, 3, 3]
    assert cells(over, *ends) == ["", ""]
    # 2, 2, 2 and 0 heads: mean 1.5, deviation 1, and 3.182 at three degrees of freedom.
    bounds = cells(over, "locked_ever_low", "locked_ever_high")
    assert bounds == pytest.approx([1.5 - 3.182 / 2, 1.5 + 3.182 / 2], abs=1e-3)


def test_trainings_that_a_forecast_was_found_on_cannot_test_it(tmp_path):
    made = HeadmaskFiles(tmp_path)
    place = MODEL.grid.heads().index(("dec_self", 0, 0))
    on = [float(head in (place, (place + 1) % 6)) for head in range(6)]
    for seed in (2, 3, 4, 5):
        key = ("synthetic.en-art", IMPT, seed)
        made.runs.append(key)
        made.masks(key, {90: on})
        made.slopes(key, {})
    found = rows(made)
    # Each has one locked head in that layer, and one in another of the four.
    p_values = [found[IMPT, seed]["place_p"] for seed in (2, 3, 4, 5)]
    assert p_values == ["", "", 2 / 4, 2 / 4]
    assert [found[IMPT, seed]["place_both"] for seed in (2, 3, 4, 5)] == [1] * 4
    assert found[IMPT, ""]["place_p"] == (2 / 4) ** 2  # of seeds 4 and 5 alone
    shown = tables(made)["headmask_locked"].shown["in the first self-attention of the decoder"]
    told = "1, 50 % of them (by chance 0.333; "
    assert shown.tolist()[:3] == [f"{told}exploratory)"] * 2 + [f"{told}p 0.50)"]


def test_a_kind_that_is_spared_is_no_candidate(tmp_path):
    made = HeadmaskFiles(tmp_path)
    masks = {40: [1, 1, 0, 0, 0, 0], 100: [1, 1, 0, 0, 0, 0]}
    add(made, "impt-2-spare_dec_self-held40", 1, masks)
    # Six heads, one of them of decoder self-attention.
    assert predict(history(made), "held") == Overlap(5, 2, 2, 2)


def test_heads_of_the_first_self_attention_of_the_decoder_are_foretold(tmp_path):
    place = MODEL.grid.heads().index(("dec_self", 0, 0))
    others = [head for head in range(6) if head != place]
    one, none, spared = (HeadmaskFiles(tmp_path / name) for name in "abc")
    add(one, "impt-2", 1, {90: [float(head in (place, others[1])) for head in range(6)]})
    add(none, "impt-2", 1, {90: [float(head in others[:2]) for head in range(6)]})
    add(spared, "impt-2-spare_dec_self", 1, {90: [float(head in others[:2]) for head in range(6)]})
    # One head of that layer; of the four layers, two have a locked head.
    assert predict(history(one), "place") == Overlap(6, 1, 2, 1)
    (row,) = rows(one).values()
    columns = [f"place_{what}" for what in ("both", "expected", "precision", "recall", "p")]
    assert cells(row, *columns) == pytest.approx([1, 1 / 3, 0.5, 1, 2 / 4])
    assert predict(history(none), "place") == Overlap(6, 1, 2, 0)
    assert predict(history(spared), "place") is None  # where it may not be masked
    add(none, "random-2", 1, {90: [1, 1, 0, 0, 0, 0]})
    assert predict(history(none), "place") is None
    # Where the run itself holds a head of that layer, which then is locked in.
    held = [float(head == place) for head in range(6)]
    add(none, "impt-1-held40-held_in_dec_self", 1, {40: held, 100: held})
    assert history(none).ever[place] and predict(history(none), "place") is None


def test_a_hold_in_a_layer_that_locks_nothing_in_says_nothing(tmp_path):
    made = HeadmaskFiles(tmp_path)
    run = "impt-1-held40-held_in_enc_self"
    for seed in (1, 2):
        add(made, run, seed, {40: [1] + [0] * 5, 100: [0, 0, 0, 1, 0, 0]})
    # Drawn from heads 0 and 1, of which none is locked in afterwards: head 3 is.
    for seed in (1, 2, ""):
        row = rows(made)[run, seed]
        assert cells(row, "held_both", "held_expected", "held_precision", "held_p") == [
            0,
            0,
            "",
            "",
        ]
    # A third training, of which head 0 is locked in, one of two that might have been held.
    add(made, run, 3, {40: [1] + [0] * 5, 100: [1, 0, 0, 0, 0, 0]})
    assert rows(made)[run, ""]["held_p"] == pytest.approx(1 / 2)
    shown = tables(made)["headmask_locked"].shown["foretold by the hold"]
    assert shown.tolist()[:2] == ["–", "–"]


def locked(folder, run, masks):
    made = HeadmaskFiles(folder)
    add(made, run, 1, masks)
    return np.flatnonzero(history(made).ever).tolist()


def test_what_counts_as_locked_in(tmp_path):
    on, off = [1, 0.9, 0.89, 0, 0, 0], [0] * 6
    assert locked(tmp_path, IMPT, {25: on, 50: on}) == [0, 1]
    assert locked(tmp_path, IMPT, {25: on, 49: on}) == []  # 49 updates are too few
    assert locked(tmp_path, IMPT, {25: on, 50: off, 75: on}) == []
    # Of the updates that mask, as training drew them: all of these, and all but an eighth.
    draws = [Stream.HEAD_MASK.generator(1, update).random() for update in range(1, 51)]
    count = sum(draw < 0.5 for draw in draws)
    assert count not in (0, 25, 50)  # so that half of the updates would be another number
    shares = [count / 50, 0.88 * count / 50, 0, 0, 0, 0]
    assert locked(tmp_path, "impt-2-p0.5", {50: shares}) == [0]
    # An interval with a held update does not count, nor does the one after it lack 50 updates.
    assert locked(tmp_path, HELD, {60: on, 109: on}) == []
    assert locked(tmp_path, HELD, {60: on, 110: on}) == [0, 1]


def test_updates_before_masking_begins_lock_nothing_in(tmp_path):
    on, off = [1, 1, 0, 0, 0, 0], [0] * 6
    assert locked(tmp_path, "impt-2-after50", {50: on, 75: on}) == []
    assert locked(tmp_path, "impt-2-after50", {50: on, 100: on}) == [0, 1]
    # Of the five updates from 21 to 25 alone, as 0.2 of an interval of 25; the rule may not count
    # an interval that begins before masking does.
    assert locked(tmp_path, "impt-2-after20", {25: [0.2, 0, 0, 0, 0, 0], 74: on}) == []
    assert locked(tmp_path, "impt-2-after20", {25: [0.2, 0, 0, 0, 0, 0], 75: on}) == [0, 1]
    made = HeadmaskFiles(tmp_path)
    add(made, "impt-2-after20", 1, {25: [0.2, 0, 0, 0, 0, 0], 75: on})
    assert history(made).masking.tolist() == [5, 50]
    add(made, "impt-2-p0.5-after20", 1, {25: off, 75: off})
    drawn = [Stream.HEAD_MASK.generator(1, update).random() < 0.5 for update in range(21, 76)]
    assert history(made).masking.tolist() == [sum(drawn[:5]), sum(drawn[5:])]


def test_heads_that_are_held_later_are_known(tmp_path):
    made = HeadmaskFiles(tmp_path)
    run = "impt-2-held40-after60"
    off, on = [0] * 6, [0, 1, 1, 0, 0, 0]
    add(made, run, 1, {30: off, 60: off, 80: on, 100: on, 160: [0, 0, 1, 1, 0, 0]})
    recorded = history(made)
    assert recorded.free.tolist() == [False] * 4 + [True]
    assert recorded.masking.tolist() == [0, 0, 20, 20, 60]
    assert np.flatnonzero(recorded.held).tolist() == [1, 2]
    assert predict(recorded, "held") == Overlap(6, 2, 2, 1)
    # Drawn from the two heads of the first layer of the encoder: both that are locked in, heads 0
    # and 3, would be one of two held ones of six heads in 8 of 15 cases; here it is a half.
    add(made, "impt-1-held40-held_in_enc_self", 1, {40: [1] + [0] * 5, 100: [1, 0, 0, 1, 0, 0]})
    assert predict(history(made), "held") == Overlap(2, 1, 1, 1)
    add(made, run, 2, {60: off, 100: [0, 1, 0.5, 0, 0, 0]})
    with pytest.raises(UserError, match="expected 2 heads.*updates from 61 to 100, found 1"):
        history(made).held  # noqa: B018


def test_held_heads_that_no_interval_tells(tmp_path):
    made = HeadmaskFiles(tmp_path)
    add(made, HELD, 1, dict.fromkeys((60, 120), [1, 1, 0, 0, 0, 0]))
    table = tables(made)["headmask_locked"]
    assert table.tidy["held_both"].tolist() == [""]
    (warning,) = table.warnings
    assert warning.startswith(f"{HELD}, seed 1 of {PAIR}: no validation lies within its 40 held")
    assert tables(made)["headmask_locked_heads"].tidy["was_held"].tolist() == ["", ""]


def test_another_number_of_held_heads_is_refused(tmp_path):
    made = HeadmaskFiles(tmp_path)
    add(made, HELD, 1, {40: [1, 0.9, 0.1, 0, 0, 0]})
    told = r"impt-2-held40 \(multi.en-de, seed 1\): expected 2 heads.*updates from 1 to 40, found 1"
    with pytest.raises(UserError, match=told):
        rows(made)


def test_slopes_of_other_intervals_are_refused(files):
    add(files, IMPT, 2, {50: [1, 1, 0, 0, 0, 0]}, {51: [(0, 0, 0)] * 6})
    with pytest.raises(UserError, match=r"slopes.csv of impt-2.*ends at update 51; train it again"):
        rows(files)


def test_every_locked_head_has_a_row(files):
    table = tables(files)["headmask_locked_heads"]
    found = table.tidy.set_index(["run", "seed"])
    first, third = found.loc[(HELD, 1)].to_dict("records")
    assert cells(first, "kind", "layer", "head") == list(ADDRESSES[0])
    times = ("locked_from", "locked_to", "locked_intervals", "locked_updates")
    assert cells(first, *times) == [40, 100, 2, 60] and cells(third, *times) == [40, 130, 3, 90]
    assert cells(first, "slope_mean", "slope_sd", "was_held") == [3, 2, "yes"]
    assert cells(third, "slope_mean", "slope_sd", "was_held") == [1, 2, "no"]
    sizes = [f"importance_{when}" for when in ("before", "locked", "end")]
    assert cells(first, *sizes) == [7, 4, 4] and cells(third, *sizes) == [7, 2, 1]
    assert found.loc["baseline", ["kind", "locked_from"]].values.tolist() == [["", ""]]
    assert table.shown["head"].tolist()[:3] == ["–", "enc_self.0.0", "enc_self.1.0"]
    assert table.shown["slope"][1] == "+3.00 ± 2.00"


def test_stretches_of_true_values():
    assert list(spells(np.array([1, 1, 0, 1, 0, 0, 1], dtype=bool))) == [(0, 2), (3, 4), (6, 7)]
    assert not list(spells(np.zeros(3, dtype=bool)))


def test_chance_of_an_overlap():
    # Five of ten and five of ten, all in common: one in 252. None in common or more: always.
    assert overlap_p([Overlap(10, 5, 5, 5)]) == pytest.approx(1 / math.comb(10, 5))
    assert overlap_p([Overlap(10, 5, 5, 0)]) == pytest.approx(1)
    assert overlap_p([Overlap(10, 5, 0, 0)] * 2) == 1
    assert Overlap(48, 6, 6, 2).expected == 0.75


def test_chance_of_numbers_that_are_drawn():
    # Of 4 or 3, 3 or 5 and 3 or 6 all eight sums but 3 + 3 + 3 reach 10; so do 4 + 0 + 6 and
    # 0 + 5 + 6, each with one of four empty layers: 7 + 4 + 4 of 216.
    layers = [[0, 0, 4, 0, 3, 0], [0, 0, 3, 0, 5, 0], [0, 0, 3, 0, 6, 0]]
    assert drawn_p(layers, 10) == pytest.approx(15 / 216)
    # All heads in one layer of each: no other draw reaches it.
    assert drawn_p([[7, 0, 0, 0, 0, 0]] * 3, 21) == pytest.approx(1 / 216)
    assert drawn_p([[1, 0]], 0) == 1


def test_slopes_are_of_first_order_and_ratios_of_units(files):
    """Each is told once: the one where harm is, in the caption, the other in a note."""
    table = tables(files)["headmask_locked"]
    assert "of harm, to first order, if" in table.caption
    assert table.text.count("Ratios of different units cannot be compared") == 1


def test_captions(files):
    found = tables(files)
    assert tell_what_is_covered(found) == []
    assert "Data: multi.en-de; seeds 1, 2; N = 2 of 6 heads." in found["headmask_locked"].text
