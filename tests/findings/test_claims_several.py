"""Claims where results hold more than one complete set: other pairs, seeds, scopes, starts.

What stands beside must change no verdict, number, reason or count that it has no part in.
"""

from collections.abc import Callable

import pytest
from planted_claims import PLANTED, decided
from planted_files import (
    PAIR,
    SEEDS,
    Files,
    areas,
    both_methods,
    deltas,
    effect,
    masked_runs,
    of,
    ratios,
    speeds,
    super_heads,
    write_results,
)
from planted_heads import gates, heads_with, ranked, roles, scratch, sweep, widths

from headcount.findings.claims.decisions import decide
from headcount.findings.claims.evidence import Evidence, result_files
from headcount.findings.claims.ledger import claims
from headcount.findings.claims.verdicts import Decision

COMPARISON = "tables/voita_comparison.csv"
PRUNING = "tables/voita_pruning.csv"
OTHER = "b.de-en"


def kept(files: Files, chosen: Callable[[dict], bool]) -> Files:
    return {name: [row for row in rows if chosen(row)] for name, rows in files.items()}


def put(files: Files, **cells) -> Files:
    return {name: [row | cells for row in rows] for name, rows in files.items()}


def joined(*several: Files) -> Files:
    names = dict.fromkeys(name for files in several for name in files)
    return {name: [row for files in several for row in files.get(name, [])] for name in names}


def over(folder, name: str, **experiments: Files) -> Decision:
    """The decision from several experiments."""
    for experiment, files in experiments.items():
        write_results(folder / experiment, files)
    return decide(claims()[name], Evidence(result_files(folder)))[0]


def control(left: int, scope: str = "all", heads: int = 48, **cells) -> Files:
    """A control, whose BLEU is by definition no other than its own."""
    run = {"lambda": 0.0, "left": left, **effect(0, 0, 1), **cells}
    return gates([run], scope, heads)


@pytest.mark.parametrize(
    ("name", "method", "files"),
    [
        ("HM-07", "impt", ratios(5, [0.4, 0.5, 0.6], [0.1, 0.11, 0.12])),
        ("HM-08", "impt", ratios(6, [0.78, 0.8, 0.82], [0.7, 0.75, 0.8])),
        ("HM-10", "random", super_heads(5, 3, 2)),
    ],
)
def test_a_claim_on_both_methods_needs_both(tmp_path, name, method, files):
    assert decided(tmp_path / "both", name, files).verdict == "holds"
    one = kept(files, lambda row: not row["run"].startswith(method))
    found = decided(tmp_path / "one", name, one)
    assert found.verdict == "undecided"
    assert found.reason.startswith("no such run: ") and found.reason.endswith(f", {PAIR}")
    assert found.value != found.value  # none


def test_a_method_with_too_few_seeds_leaves_it_open_and_one_that_fails_does_not(tmp_path):
    """X-03: Impt-N keeps less; of two seeds that decides nothing, and Random-N is not both."""
    runs = {"baseline": [[0, -5, -30]], "random-6": [[0, -1, -30]], "impt-6": [[0, -25, -30]]}
    files = masked_runs(runs, "orders")
    assert decided(tmp_path / "3", "X-03", files).verdict == "does not hold"
    less = {name: rows for name, rows in files.items() if "impt-6/seed3" not in name}
    found = decided(tmp_path / "2", "X-03", less)
    assert found.verdict == "undecided"
    assert found.reason == f"2 seeds: a claim about trainings needs 3; impt, {PAIR}"
    # Random-N that raises importance fails the claim, whatever Impt-N does.
    files = ratios(6, [1.02, 1.03, 1.025], [0.7, 0.75, 0.8])
    files = kept(files, lambda row: (row["run"], row["seed"]) != ("impt-6", 3))
    assert decided(tmp_path / "fails", "HM-08", files).verdict == "does not hold"


def test_what_fails_a_claim_is_named_with_its_number(tmp_path):
    """Random-N is 1.025 times the baseline's (1.0127 to 1.0375); Impt-N 1.25, and anything."""
    found = decided(tmp_path, "HM-08", ratios(6, [1.02, 1.03, 1.025], [1.1, 0.8, 2.2]))
    assert (found.verdict, found.reason) == ("does not hold", f"decided by: random, {PAIR}")
    assert found.value == pytest.approx(1.025, abs=1e-4) and 1 < found.low < found.value


def test_the_area_that_fails_a_claim_is_its_number(tmp_path):
    """MI-13: the encoder's curve is farther on the wrong side, with an interval from -4 to 2."""
    changes = {"enc_self/importance": -1, "dec_self/importance": -0.5}
    files = areas(changes, "dec_enc/importance")
    files["tables/michel_areas.csv"][0].update(effect(-1, 3.0))
    found = decided(tmp_path, "MI-13", files)
    assert (found.verdict, found.value) == ("does not hold", -0.5)


def test_a_pair_of_one_seed_decides_nothing_and_is_not_counted(tmp_path):
    files = ratios(6, [0.78, 0.8, 0.82], [0.7, 0.75, 0.8])
    more = kept(put(files, pair=OTHER), lambda row: row["seed"] == 1)
    alone, found = (
        decided(tmp_path / name, "HM-08", each)
        for name, each in (("1", files), ("2", joined(files, more)))
    )
    assert str(found) == str(alone) and found.seeds == 3
    gains = deltas("random", {PAIR: [0.4, 0.5, 0.6], OTHER: [-3.0]})
    found = decided(tmp_path / "gains", "HM-04", gains)
    assert (found.value, found.seeds) == (pytest.approx(0.5), 3)


def test_a_pair_of_one_seed_is_no_difference_between_seeds(tmp_path):
    """Random-N gains 0.4, 0.5, 0.6; the other pair's seed gains 2."""
    files = both_methods([0.5, 0.6, 0.7], [0.1, 0.1, 0.1])
    more = kept(put(both_methods([2.1, 0, 0], [0.1] * 3), pair=OTHER), lambda r: r["seed"] == 1)
    found = decided(tmp_path, "HM-06", joined(files, more))
    assert (found.verdict, found.value, found.seeds) == ("holds", pytest.approx(0.5), 3)
    assert found.reason == "3 trainings of each, over all pairs of 3 seeds"


@pytest.mark.parametrize(
    ("gains", "told"),
    [
        (
            {PAIR: [0.4, 0.5, 0.6], "b.vi-en": [0.0]},
            "; with vi one seed: a claim about trainings needs 3",
        ),
        ({PAIR: [0.4], "b.vi-en": [0.0, 0.01, -0.01]}, "one seed: a claim about trainings needs 3"),
        ({"b.vi-en": [0.0, 0.01, -0.01]}, "no pair without vi"),
        ({PAIR: [0.4, 0.5, 0.6]}, "; no pair with vi"),
    ],
)
def test_a_direction_of_few_seeds_is_not_called_missing(tmp_path, gains, told):
    found = decided(tmp_path, "HM-05", deltas("impt", gains))
    assert found.verdict == "undecided" and found.reason.endswith(told)


@pytest.mark.parametrize("name", ["VO-15", "VO-16"])
def test_a_training_without_gates_has_no_part_in_what_gates_leave(tmp_path, name):
    files = PLANTED[name][0]()
    plain = kept(files, lambda row: row["run"] == "baseline")
    alone = decided(tmp_path / "alone", name, files)
    assert alone.verdict == "holds"
    for place, other in enumerate((plain, put(plain, pair=OTHER))):
        assert str(over(tmp_path / str(place), name, a=files, b=other)) == str(alone)
    assert str(decided(tmp_path / "seed 2", name, joined(files, put(plain, seed=2)))) == str(alone)


def test_gates_of_two_pairs_may_have_other_scopes(tmp_path):
    files = PLANTED["VO-16"][0]()
    other = put(files, pair=OTHER)
    for rows in other.values():
        rows[:] = [row | {"scope": row["scope"] and "all"} for row in rows]
    assert over(tmp_path, "VO-16", a=files, b=other).verdict == "holds"


@pytest.mark.parametrize(
    ("name", "files", "beside", "value"),
    [
        ("VO-20", sweep([36, 20], [-3, -9], "all", 48), control(35), -9),
        (
            "VO-25",
            gates([{"lambda": 0.1, "left": 4, "delta": -20, "enc_self_layers": "4 0"}]),
            control(8, "enc_self", 16, enc_self_layers="8 0"),
            -20,
        ),
    ],
)
def test_a_control_that_lost_heads_decides_nothing(tmp_path, name, files, beside, value):
    alone = decided(tmp_path / "alone", name, files)
    assert (alone.verdict, alone.value) == ("does not hold", value)
    assert str(decided(tmp_path / "beside", name, joined(beside, files))) == str(alone)


def test_a_control_that_lost_heads_is_no_point_of_a_sweep(tmp_path):
    files = PLANTED["VO-19"][0]()
    alone = decided(tmp_path / "alone", "VO-19", files)
    lost = {"dec_self": (15, 16), "dec_enc": (16, 15)}
    rows = [of("gates-all-l0", kind=kind, layers=layer, pruned=1, heads_left=left, **{"lambda": 0})
            for kind, counts in lost.items() for layer, left in enumerate(counts)]  # fmt: skip
    beside = joined(files, {"figures/voita_fig10.csv": rows})
    assert str(decided(tmp_path / "beside", "VO-19", beside)) == str(alone)


@pytest.mark.parametrize("name", ["VO-23", "VB-04"])
def test_a_short_sweep_of_another_experiment_has_no_part_in_many_counts(tmp_path, name):
    long, short = sweep([48, 40, 30, 20, 9], [0] * 5, "all", 48), sweep([16, 12, 8, 4], [0] * 4)
    alone = decided(tmp_path / "alone", name, long)
    assert alone.verdict == "holds"
    assert str(over(tmp_path / "both", name, a=long, b=short)) == str(alone)
    found = decided(tmp_path / "short", name, short)
    assert (found.verdict, found.reason[:18]) == ("undecided", "between the limits")


def test_gates_on_other_models_than_the_baseline_are_not_compared(tmp_path):
    """Theirs are sparser, and would turn both verdicts."""
    twins = [of("x", seed, test_set="test", comparison="tuned", contender="scratch", heads_left=5,
                gates_run="gates-5-from-random-9", delta=1 + 0.01 * seed)
             for seed in SEEDS]  # fmt: skip
    start = [of("gates-5-from-random-9", seed, start="random-9") for seed in SEEDS]
    plain = gates([{"lambda": 0.1, "left": 5}])[PRUNING][0]
    others = [plain | row for row in start]
    files = scratch(0.5)
    alone = decided(tmp_path / "alone", "VO-21", files)
    assert alone.verdict == "holds"
    beside = joined(files, {COMPARISON: twins, PRUNING: others})
    assert str(decided(tmp_path / "beside", "VO-21", beside)) == str(alone)
    files = ranked(-3)
    alone = decided(tmp_path / "ranked", "X-02", files)
    assert alone.verdict == "holds"
    theirs = [row | {"gates_run": "gates-5-from-random-9", "delta": 9 + 0.01 * row["seed"]}
              for row in files[COMPARISON]]  # fmt: skip
    beside = joined(files, {COMPARISON: theirs, PRUNING: others})
    assert str(decided(tmp_path / "theirs", "X-02", beside)) == str(alone)


def test_scopes_weigh_alike_however_many_prices_they_have(tmp_path):
    """VO-22: +1 of all heads, by two prices of each, and -1 of the encoder: 0 in the mean."""
    rows = []
    for scope, start, price, change in (
        *(("all", "baseline", price, -1) for price in (0.1, 0.11)),
        *(("all", "random weights", price, -2) for price in (0.1, 0.11)),
        ("enc_self", "baseline", 0.1, -3),
        ("enc_self", "random weights", 0.1, -2),
    ):
        run = {"lambda": price, "left": 8, "delta": change, "start": start}
        found = gates([run | {"run": f"{scope} {start} {price}"}], scope)[PRUNING]
        rows += [row | {"seed": seed} for row in found for seed in SEEDS]
    assert decided(tmp_path, "VO-22", {PRUNING: rows}).value == pytest.approx(0)


def test_trainings_are_counted_once_for_all_test_sets(tmp_path):
    files = widths(20, 21)
    both = joined(files, put(files, test_set="test2"))
    alone, found = (
        decided(tmp_path / name, "VO-24", each) for name, each in (("1", files), ("2", both))
    )
    assert (found.verdict, found.value, found.seeds) == (alone.verdict, alone.value, 3)


def test_models_of_other_heads_are_compared_if_alike_in_all_else(tmp_path):
    """With dropout the one of one head has 4 BLEU less, and no model of 8 heads beside it."""
    files = widths(20, 21)
    (rows,) = files.values()
    names = {1: "baseline-h1", 8: "baseline"}
    rows[:] = [row | {"run": names.get(row["heads_per_layer"], row["run"])} for row in rows]
    alone = decided(tmp_path / "alone", "VO-24", files)
    less = [row | {"run": "baseline-h1-d0.3", "bleu": row["bleu"] - 4}
            for row in rows if row["heads_per_layer"] == 1]  # fmt: skip
    beside = joined(files, {"tables/heads_per_layer.csv": less})
    assert str(decided(tmp_path / "beside", "VO-24", beside)) == str(alone)


def test_what_does_not_apply_to_a_training_does_not_count_it(tmp_path):
    """One of two trainings has heads with a function."""
    files = PLANTED["VO-14"][0]()
    none = {name: [row | {"seed": 2, "function": ""} for row in rows]
            for name, rows in files.items()}  # fmt: skip
    alone = decided(tmp_path / "alone", "VO-14", files)
    found = decided(tmp_path / "beside", "VO-14", joined(files, none))
    assert (found.verdict, found.seeds) == (alone.verdict, 1)


def test_one_repeat_has_no_interval(tmp_path):
    files = put(speeds(101, 118), repeats=1, sd="")
    found = decided(tmp_path, "MI-14", files)
    assert (found.verdict, found.reason) == ("undecided", "one repeat has no interval")


def test_a_layer_of_one_head_has_no_second(tmp_path):
    found = decided(tmp_path, "VO-11", roles(heads_with(layer=[0, 1], relevance=[1.0, 1.0]), 3))
    assert (found.verdict, found.reason) == ("undecided", "no such run")
