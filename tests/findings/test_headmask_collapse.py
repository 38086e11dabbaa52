"""Which trainings collapsed, from hand-made files; numbers are worked out beside them."""

import pytest
from chapters import gather_results, make_tables
from headmask_files import HeadmaskFiles, masking_rows
from masked_runs import LINES, PAIR, SETTINGS, add_run, three_runs

from headcount.base.random_streams import Stream
from headcount.findings.headmask.collapse import collapse_table
from headcount.findings.headmask.importance import read_importance
from headcount.findings.masked_training import CURVES, late_frequencies, read_masks, with_lengths
from headcount.findings.masking import read_masking
from headcount.findings.results import gather, read_runs


@pytest.fixture
def files(tmp_path):
    return three_runs(tmp_path)


def collapse(files):
    """Evidence of collapse by run and seed."""
    listed = files.lists()
    heads, masks = read_importance(listed["importance"]), read_masks(listed["masks"])
    curves = with_lengths(gather(listed["curves"], CURVES))
    table = collapse_table(
        read_runs(listed["trained_runs"]), heads, masks, curves, read_masking(listed["masking"])
    )
    return table.set_index(["run", "seed"])


def test_collapse_is_told_from_masks_losses_and_bleu(files):
    found = make_tables("headmask", files.lists(), SETTINGS)["headmask_collapse"]
    evidence = found.tidy.set_index(["run", "seed"])
    impt = evidence.loc[("impt-2", 1)]
    # Intervals of 10 and 20 updates: head 1 in 10 + 19 of 30, head 2 in 10, 4 and 5 in 10 each,
    # head 6 in 1, head 3 never. The middle of 0 1 10 10 10 29 is 10.
    assert impt["largest_frequency"] == pytest.approx(29 / 30)
    assert impt["median_frequency"] == pytest.approx(10 / 30)
    # The two most masked: heads 1 and 2 (first of three equals): 39 of 60 masks.
    assert impt["top_n_share"] == pytest.approx(39 / 60)
    # Second half: only the interval that ends at update 30.
    assert (impt["late_largest_frequency"], impt["abandoned_heads"]) == (0.95, 1)
    assert (impt["first_pass_loss"], impt["masked_loss"]) == (1.5, 1.0)
    assert impt["most_masked_importance"] == 1.0
    # 29 unmasked, 36 with the top group masked: + 7, interval from 6 to 9.
    assert impt[["top_group_delta", "top_group_low", "top_group_high"]].tolist() == [7, 6, 9]
    assert (impt["heads"], impt["n"], impt["collapsed"]) == (6, 2, "yes")
    warnings = found.warnings
    assert len(warnings) == (evidence["collapsed"] == "yes").sum()
    assert warnings[0].startswith(f"impt-2, seed 1 of {PAIR} collapsed in training")
    random = evidence.loc[("random-1", 1)]
    assert (random["abandoned_heads"], random["first_pass_loss"], random["collapsed"]) == (
        0,
        "",
        "no",
    )
    # Of 30 updates: heads 1 6, 2 4 + 2, 3 4, 4 6, 5 8: head 5 has 8 of 30 masks.
    assert random["top_n_share"] == pytest.approx(8 / 30)
    # Its importance 2 against a mean of 3.
    assert random["most_masked_importance"] == pytest.approx(2 / 3)
    baseline = evidence.loc[("baseline", 1)]
    assert (baseline["n"], baseline["largest_frequency"], baseline["collapsed"]) == (0, 0, "no")
    assert baseline["top_group_delta"] == -20


@pytest.mark.parametrize(
    ("late", "first_pass", "top_group", "verdict"),
    [
        (0.9, 1.1, 10.0, "yes"),  # louder with all heads
        (0.9, 0.9, 40.0, "yes"),  # better without its top group
        (0.9, 0.9, 30.5, "no"),  # + 0.5, but the interval begins at − 0.5
        (0.9, 0.9, 10.0, "no"),  # abandoned, without harm
        (0.89, 1.1, 40.0, "no"),  # harm, but no head is abandoned
    ],
)
def test_the_verdict_needs_an_abandoned_head_and_harm(files, late, first_pass, top_group, verdict):
    run = (PAIR, "impt-2", 1)
    files.runs = [run]
    files.masks(run, {10: [1.0, 1, 0, 0, 0, 0], 30: [late, 0.1, 0.2, 0.5, 0.1, 0.1]})
    files.curves(run, {10: (9.0, 99.0), 30: (1.0, first_pass)})
    files.masking(run, masking_rows(30.0, (top_group, 20.0), [12.0]), test="flickr")
    assert collapse(files).loc[("impt-2", 1), "collapsed"] == verdict


def test_the_second_half_is_weighed_by_updates(files):
    run = (PAIR, "impt-2", 1)
    files.runs = [run]
    # 1 to 10 begins before the middle of 31 updates, 11 to 19 too; 20 to 30 and 31 do not.
    steps = {10: 0.0, 19: 0.0, 30: 1.0, 31: 0.0}
    files.masks(run, {step: [share, 0, 0, 0, 0, 0] for step, share in steps.items()})
    files.curves(run, {10: (9.0, 99.0), 19: (9.0, 99.0), 30: (2.0, 1.5), 31: (8.0, 4.5)})
    impt = collapse(files).loc[("impt-2", 1)]
    assert impt["late_largest_frequency"] == pytest.approx(11 / 12)
    # 11 updates and 1: (11 · 2 + 8) / 12 and (11 · 1.5 + 4.5) / 12.
    assert impt["masked_loss"] == pytest.approx(2.5)
    assert impt["first_pass_loss"] == pytest.approx(1.75)


def test_both_losses_are_of_the_intervals_that_rank_heads(files):
    """Ranking begins late: what was lost before it has no first pass to be compared with."""
    run = (PAIR, "impt-2-after30", 1)
    add_run(files, run, 30.0, LINES, [1.0, 2, 3, 4, 5, 9])
    files.masks(run, {step: [0.0] * 6 for step in (10, 20, 30)} | {40: [1.0, 1, 0, 0, 0, 0]})
    files.curves(run, {10: (9.0, ""), 20: (9.0, ""), 30: (9.0, ""), 40: (1.0, 1.5)})
    found = collapse(files).loc[("impt-2-after30", 1)]
    assert (found["masked_loss"], found["first_pass_loss"], found["collapsed"]) == (1, 1.5, "yes")


def test_a_run_that_masks_half_of_the_time_can_collapse_too(files):
    run = (PAIR, "impt-2-p0.5", 1)
    add_run(files, run, 30.0, LINES, [1.0, 2, 3, 4, 5, 9])
    # The updates that mask, as training drew them: other ones than the half to be expected.
    draws = [Stream.HEAD_MASK.generator(1, update).random() < 0.5 for update in range(11, 31)]
    share = sum(draws) / 20
    assert share not in (0, 0.5, 1)
    late = [0.9 * share, 0.88 * share, 0.1 * share, 0.12 * share, 0, 0]
    files.masks(run, {10: [0.5, 0.5, 0, 0, 0, 0], 30: late})
    files.curves(run, {10: (1.0, 1.0), 30: (1.0, 1.1)})
    found = collapse(files).loc[("impt-2-p0.5", 1)]
    # Of the updates that mask, 90 % and 88 %.
    assert (found["abandoned_heads"], found["collapsed"]) == (1, "yes")
    assert found["late_largest_frequency"] == pytest.approx(0.9)


def test_a_run_none_of_whose_later_updates_masks_abandons_nothing(tmp_path):
    made = HeadmaskFiles(tmp_path)
    run = (PAIR, "impt-2-p0.1", 1)
    drawn = [Stream.HEAD_MASK.generator(1, update).random() < 0.1 for update in range(3, 5)]
    assert not any(drawn)
    made.masks(run, {2: [0.5, 0, 0, 0, 0, 0], 4: [0.0] * 6})
    made.runs = [run]
    results = gather_results("headmask", made.lists(), SETTINGS)
    late = late_frequencies(results.read(read_masks, "masks"), results.runs)
    assert late.tolist() == [0.0] * 6
