"""Seconds from units of work, and what they come to on the clock."""

import pytest

from headcount.estimate.work import Work, by_rule, estimate_table, seconds_of, wall_seconds

RATES = {"starts": 2.0, "updates": 0.1, "translations": 0.5}
WORKS = [
    Work("translate", "a.baseline", 3, {"starts": 1, "translations": 10}),
    Work("train", "a.baseline", 3, {"starts": 1, "updates": 100}),
    Work("train", "a.impt-6", 3, {"starts": 1, "updates": 170}),
    Work("speed", "a", 1, {"starts": 1}, alone=True),
]


def test_seconds_of_a_job_are_its_units_by_their_rates():
    assert seconds_of({"starts": 1, "updates": 30, "translations": 4}, RATES) == 2 + 3 + 2


def test_rules_are_added_up_the_longest_first():
    table = by_rule(estimate_table(WORKS, RATES, {}))
    assert table.to_numpy().tolist() == [
        ["train", 6, 3 * (2 + 10) + 3 * (2 + 17), 19.0],
        ["translate", 3, 3 * (2 + 5), 7.0],
        ["speed", 1, 2.0, 2.0],
    ]


def test_a_record_counts_where_there_is_one_and_the_rates_stay_beside_it():
    table = estimate_table(WORKS, RATES, {"translate": 4.0})
    assert table["seconds"].tolist() == [4.0, 12.0, 19.0, 2.0]
    assert table["rated_seconds"].tolist() == [7.0, 12.0, 19.0, 2.0]


@pytest.mark.parametrize(
    ("workers", "chain", "seconds"),
    [
        (1, 0, 21 + 93 + 2),
        (2, 0, (21 + 93) / 2 + 2),
        (2, 70, 70 + 2),  # a chain cannot be shared out; what runs alone comes on top
    ],
)
def test_time_on_the_clock_is_that_of_the_cores_or_of_the_longest_chain(workers, chain, seconds):
    assert wall_seconds(estimate_table(WORKS, RATES, {}), workers, chain) == seconds
