"""Verdicts on the papers' claims, on planted data for which each holds and does not hold."""

import json
from math import isnan, nan

import pandas as pd
import pytest
from captions import check_caption
from planted_claims import LITTLE, MUCH, PLANTED, decided
from planted_files import (
    PAIR,
    ablation,
    both_methods,
    deltas,
    of,
    steps,
    transfer,
    write_results,
)
from planted_heads import heads_with, roles, widths
from project_copy import ROOT
from script_runner import run_script

from headcount.base.errors import UserError
from headcount.base.settings.experiment import experiment_names, load_experiment
from headcount.findings.claims.decisions import DECISIONS, decide
from headcount.findings.claims.estimates import combined, welch
from headcount.findings.claims.evidence import Evidence, result_files
from headcount.findings.claims.ledger import beside_ours, claims, printed_words
from headcount.findings.claims.roles import label_effect
from headcount.findings.claims.table import adjust, corrected, ledger_table
from headcount.findings.claims.verdicts import (
    FAILS,
    HOLDS,
    NOT_APPLICABLE,
    UNDECIDED,
    Decision,
)

NAMES = (
    [f"HM-{number:02}" for number in range(1, 16)]
    + [f"MI-{number:02}" for number in range(1, 18)]
    + [f"VO-{number:02}" for number in range(1, 27)]
    + [f"VB-{number:02}" for number in range(1, 5)]
    + [f"X-{number:02}" for number in range(1, 4)]
)
"""Of the 65 claims of the papers."""


def test_the_ledger_has_every_claim_once():
    assert list(claims()) == NAMES and len(NAMES) == 65
    assert {claim.decide for claim in claims().values()} == set(DECISIONS)
    assert set(NAMES) == set(PLANTED)


@pytest.mark.parametrize("name", PLANTED)
def test_a_claim_holds_and_does_not_hold_on_planted_data(tmp_path, name):
    """And its reason has words for a reader, no keys."""
    for verdict, files in zip((HOLDS, FAILS), PLANTED[name], strict=True):
        found = decided(tmp_path / verdict, name, files())
        assert found.verdict == verdict, found
        words = found.reason.split()
        keys = [word for word in words if "_" in word and not word.startswith("gates-")]
        assert not keys and "/" not in found.reason, found.reason


def test_without_files_every_claim_is_undecided_for_want_of_a_run():
    found = {name: decide(claim, Evidence([]))[0] for name, claim in claims().items()}
    assert {decision.verdict for decision in found.values()} == {UNDECIDED}
    assert all(decision.reason.startswith("no such run") for decision in found.values())


def test_one_seed_decides_nothing_about_trainings(tmp_path):
    """BLEU 0.5 above the baseline, one seed: no t interval; two seeds have one, and too few."""
    one = decided(tmp_path / "one", "HM-04", deltas("random", {PAIR: [0.5]}))
    assert (one.verdict, one.value, one.seeds) == (UNDECIDED, 0.5, 1)
    assert one.reason == "one seed: a claim about trainings needs 3"
    two = decided(tmp_path / "two", "HM-06", both_methods([0.5, 0.7], [0.1, 0.1]))
    assert (two.verdict, two.reason) == (UNDECIDED, "2 seeds: a claim about trainings needs 3")
    assert two.value == pytest.approx(0.5)  # the mean of 0.4 and 0.6
    ((name, rows),) = widths(20, 21).items()
    first = decided(tmp_path / "first", "VO-24", {name: [row for row in rows if row["seed"] == 1]})
    assert (first.verdict, first.value, first.reason) == (UNDECIDED, 1.0, one.reason)


def test_few_sentences_decide_nothing(tmp_path):
    """1 of 10 heads is below 15 %, but of 60 sentences hardly any effect is significant."""
    tests = {"test": [LITTLE] * 9 + [MUCH]}
    found = decided(tmp_path / "few", "MI-01", ablation(tests, sentences=60))
    assert (found.verdict, found.value) == (UNDECIDED, 0.1)
    assert (
        found.reason
        == "between the limits: 1 of 10 heads, 0 by Holm; 60 sentences of at least 1000"
    )
    wide = steps({0: 0.0, 10: 0.0, 20: -3.5})
    for row in wide["figures/michel_pruning.csv"]:
        row |= {"p": 0.09, "delta_low": row["delta"] - 5}
    found = decided(tmp_path / "wide", "MI-06", wide)  # not significant, but perhaps 8.5 BLEU
    assert (found.verdict, found.value) == (UNDECIDED, -3.5)


def test_a_model_that_hardly_translates_decides_nothing(tmp_path):
    """One head in each layer costs 20 of 30 BLEU, says one file; the other that BLEU is 4.9."""
    scores = [of(test_set="test", metric="bleu", score=4.9)]
    files = PLANTED["MI-07"][0]() | {"tables/bleu.csv": scores}
    found = decided(tmp_path, "MI-07", files)
    assert found.verdict == UNDECIDED
    assert found.reason == "no such run with a baseline of BLEU 5 or more"


def test_what_has_no_premise_is_not_applicable(tmp_path):
    heads = roles(heads_with(function=["v→s", "", ""]))
    for name in ("VO-05", "VO-06"):
        found = decided(tmp_path / name, name, heads)
        assert (found.verdict, found.reason) == (NOT_APPLICABLE, "no positional head")


def test_models_that_disagree_leave_a_claim_undecided(tmp_path):
    """Seed 1 has r 0.6, seed 2 has 0.0: the mean, and an interval around both."""
    ((name, rows),) = transfer(0, -0.2, 0.2, 0.9).items()
    folders = [
        write_results(tmp_path / experiment, files)
        for experiment, files in (
            ("a", transfer(0.6, 0.3, 0.8, 0.001)),
            ("b", {name: [row | {"seed": 2} for row in rows]}),
        )
    ]
    files = [path for folder in folders for path in result_files(folder)]
    found, read = decide(claims()["MI-03"], Evidence(files))
    assert found.reason == "of 2: holds in 1, does not hold in 1 (test and dev)"
    assert found == Decision(UNDECIDED, found.reason, 0.3, -0.2, 0.8, 1.0, 2)
    assert read == [folder / "tables" / "michel_transfer.csv" for folder in folders]


def of_seed(seed, gain):
    """Random-N has so much more BLEU in the one training of this seed."""
    files = deltas("random", {PAIR: [gain]})
    return {
        name: [row | {"seed": seed} if row.get("seed") else row for row in rows]
        for name, rows in files.items()
    }


def test_a_seed_of_several_experiments_counts_once(tmp_path):
    """0.4 and 0.4 of seed 1, 0.5 of seed 2 and 0.6 of seed 3: as if there were one of each."""
    gains = {"a": (1, 0.4), "b": (2, 0.5), "c": (3, 0.6)}
    for name, (seed, gain) in gains.items():
        write_results(tmp_path / name, of_seed(seed, gain))
    once, _ = decide(claims()["HM-04"], Evidence(result_files(tmp_path)))
    write_results(tmp_path / "d", of_seed(1, 0.4))
    twice, _ = decide(claims()["HM-04"], Evidence(result_files(tmp_path)))
    assert once == twice and once.seeds == 3
    write_results(tmp_path / "e", of_seed(1, 1.0))  # another training: seed 1 has 0.6 on average
    found, _ = decide(claims()["HM-04"], Evidence(result_files(tmp_path)))
    assert found.value == pytest.approx((0.6 + 0.5 + 0.6) / 3) and found.seeds == 3


def test_seeds_of_several_experiments_add_up(tmp_path):
    """0.4, 0.5 and 0.6 over three folders: mean 0.5, t interval 0.5 ± 4.303 · 0.1 / √3."""
    folders = [
        write_results(tmp_path / name, of_seed(seed, gain))
        for seed, (name, gain) in enumerate((("a", 0.4), ("b", 0.5), ("c", 0.6)), start=1)
    ]
    files = [path for folder in folders for path in result_files(folder)]
    found, _ = decide(claims()["HM-04"], Evidence(files))
    assert (found.verdict, found.seeds) == (HOLDS, 3)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.2516, 0.7484), abs=1e-4)


def test_runs_are_chosen_in_each_experiment_by_its_heads(tmp_path):
    """12 heads are 12.5 % of 96, but 25 % of 48, where they do not count: 0.4 and 0.6 are left."""
    small, large = deltas("random", {PAIR: [0.4]}), deltas("random", {PAIR: [0.6]})
    other = [
        row | {"run": "random-12", "value": 9.0} for row in small["tables/headmask_table2.csv"]
    ]
    small["tables/headmask_table2.csv"] += other
    for rows in large.values():
        for row in rows:
            row["run"] = row["run"].replace("random-12", "random-24").replace("-6", "-12")
            row |= {"heads": 96} if "heads" in row else {}
    folders = [
        write_results(tmp_path / name, found) for name, found in (("a", small), ("b", large))
    ]
    files = [path for folder in folders for path in result_files(folder)]
    found, _ = decide(claims()["HM-04"], Evidence(files))
    assert found.value == pytest.approx(0.5) and found.seeds == 1  # the same seed twice
    row = ledger_table(Evidence(files), {"HM-04": claims()["HM-04"]}).iloc[0]
    assert (row["paper_value"], row["difference"]) == pytest.approx((0.4962, 0.0038), abs=1e-4)


def test_a_claim_names_the_trainings_behind_it_that_collapsed(tmp_path):
    """Neither a claim on the baseline nor one on Random-N rests on Impt-N."""
    cells = {("impt-6", 2): "yes", ("random-6", 2): "no", ("impt-12", 1): "yes"}
    failed = [of(run, seed, collapsed=each) for (run, seed), each in cells.items()]
    files = both_methods([0.5, 0.6, 0.7], [0.1, 0.1, 0.1]) | PLANTED["HM-03"][0]()
    files["tables/headmask_collapse.csv"] = failed
    evidence = Evidence(result_files(write_results(tmp_path / "planted", files)))
    table = ledger_table(evidence, {name: claims()[name] for name in ("HM-03", "HM-04", "HM-06")})
    told = "impt-6, seed 2 of some.en-de"
    assert table["collapsed"].to_list() == ["", "", told]
    assert table["verdict"].to_list()[2] == HOLDS
    assert table["reason"].to_list()[2] == (
        f"3 trainings of each, over all pairs of 3 seeds; collapsed: {told}"
    )
    assert not table["reason"].str.contains("collapsed").to_list()[1]


def test_the_same_experiment_twice_is_refused(tmp_path):
    once = write_results(tmp_path / "x" / "tiny", transfer(0.6, 0.3, 0.8, 0.001))
    again = write_results(tmp_path / "y" / "tiny", transfer(0.6, 0.3, 0.8, 0.001))
    files = result_files(once) + result_files(again)
    with pytest.raises(UserError, match="expected the results of each experiment once, found"):
        Evidence(files)


def test_families_are_corrected_and_lose_verdicts():
    """Three claims of one paper have a number, two of them a p: 0.01 · 3 and 0.04 · 2."""
    found = {"MI-01": (5.0, 0.01), "MI-02": (5.0, 0.04), "MI-03": (5.0, nan), "MI-04": (nan, nan),
             "VO-01": (5.0, 0.04)}  # fmt: skip
    adjusted = adjust({n: Decision(HOLDS, "why", value, p=p) for n, (value, p) in found.items()})
    expected = {"MI-01": 0.03, "MI-02": 0.08, "MI-03": nan, "MI-04": nan, "VO-01": 0.04}
    assert adjusted == pytest.approx(expected, nan_ok=True)
    lost = corrected(Decision(HOLDS, "why", p=0.03), 0.06)
    assert lost.verdict == UNDECIDED
    assert lost.reason == "holds alone, but not corrected for its paper's claims; why"
    assert corrected(Decision(FAILS, "why", p=0.03), 0.04).verdict == FAILS
    assert corrected(Decision(HOLDS, "a count"), nan).verdict == HOLDS


def test_sums_of_intervals_are_as_wide_as_their_parts_together():
    """2 · (1 ± 0.5) − (3 ± 1): −1, from 2 · 0.5 − 4 to 2 · 1.5 − 2; z = 1 / (2 / 1.96) = 0.98."""
    found = combined((2, -1), [(1, 0.5, 1.5), (3, 2, 4)])
    assert found[:3] == (-1, -3, 1) and found.p == pytest.approx(0.3271, abs=1e-4)


def test_welch_by_hand():
    """Means 2 and 5, variances 1 and 1 of three: t = 3 / √(2/3) = 3.674 with 4 degrees."""
    found = welch(pd.Series([1.0, 2.0, 3.0]), pd.Series([4.0, 5.0, 6.0]))
    assert (found.value, found.low, found.high) == pytest.approx((-3, -5.267, -0.733), abs=1e-3)
    assert found.p == pytest.approx(0.0213, abs=1e-4)


def test_labels_are_shuffled_within_layers():
    """Two layers of two heads; the marked one of each is 1 higher: 2 of 4 shufflings as extreme."""
    marked, layers = pd.Series([True, False] * 2), pd.Series([0, 0, 1, 1])
    effect, p = label_effect(marked, pd.Series([2.0, 1.0, 9.0, 8.0]), layers)
    assert effect == 1 and p == pytest.approx(0.5, abs=0.02)


def test_marked_heads_are_compared_with_those_of_their_own_layers():
    """In both layers they have 0.2 less; most of them are in the layer where all have more.

    Of 2 of 8 heads and 6 of 8: less the layers' means, marked heads have -0.15 and -0.05, others
    0.05 and 0.15, so that 8 marked have -0.6 / 8 and the others 0.6 / 8. As they are, marked heads
    have (2 · 0.1 + 6 · 0.8) / 8 = 0.625, others (6 · 0.3 + 2 · 1) / 8 = 0.475.
    """
    marked = pd.Series([True] * 2 + [False] * 6 + [True] * 6 + [False] * 2)
    values = pd.Series([0.1] * 2 + [0.3] * 6 + [0.8] * 6 + [1.0] * 2)
    assert values[marked].mean() > values[~marked].mean()
    effect, p = label_effect(marked, values, pd.Series([0] * 8 + [1] * 8))
    assert effect == pytest.approx(-0.15)
    assert p == pytest.approx(1 / 28**2, abs=0.002)  # of 28 · 28 arrangements this one alone


def test_published_numbers_are_not_typed_again():
    """From the tables' own numbers: 47.04 − 46.62 = 0.42 first; 33.21 / 77.28 = 0.430."""
    words = {name: printed_words(name, claim) for name, claim in claims().items()}
    assert words["HM-04"].endswith("En–Tr: 0.42, 0.87, 0.79, 0.68, 0.36, 0.27, 0.66, 0.39, 0.42")
    assert "Tr–En: 0.43, 0.463, 0.479, 0.51; of Impt-18" in words["HM-07"]
    assert words["MI-01"] == (
        "heads of the encoder with a significant effect: 8; of so many heads: 96"
    )
    assert words["MI-05"] == (
        "BLEU change: -13.56; with the head chosen on other sentences: -18.89"
    )
    assert words["VO-07"].endswith(": 10, 32, 17, 25, 37, 15, 32, 38, 2, 1, 10, 1, 2, 5, 6, 9")
    assert words["VO-11"].endswith("En–Fr: 1.324, 1.02, 1.138")
    assert words["VO-21"].endswith(": 0.15, 0.41, 0.5, 0.49, 0.01, 0.25, 0.43")


def test_a_direction_of_several_test_sets_counts_once_in_the_papers_mean():
    """Seven directions: Zh–En, the mean of MT04, MT05 and MT06, and six of one test set."""
    chinese = {"HM-04": (0.42 + 0.87 + 0.79) / 3, "HM-05": (0.32 + 0.73 + 0.07) / 3}
    chinese["HM-06"] = (0.10 + 0.14 + 0.72) / 3
    # Ro–En, Vi–En, Tr–En, En–Ro, En–Vi, En–Tr.
    others = {"HM-04": 0.68 + 0.36 + 0.27 + 0.66 + 0.39 + 0.42}
    others["HM-05"] = 0.78 - 0.13 + 0.19 + 0.49 - 0.01 + 0.36
    others["HM-06"] = -0.10 + 0.49 + 0.08 + 0.17 + 0.40 + 0.06
    for name, value in (("HM-04", 0.4962), ("HM-05", 0.2933), ("HM-06", 0.2029)):
        assert (chinese[name] + others[name]) / 7 == pytest.approx(value, abs=1e-4)
        assert beside_ours(name, claims()[name]) == pytest.approx(value, abs=1e-4)


def test_a_papers_value_of_a_statistic_is_the_mean_of_what_it_prints():
    values = {name: beside_ours(name, claim) for name, claim in claims().items()}
    assert isnan(values["MI-01"])  # 8 of 96 heads of the encoder; ours are of all kinds
    assert values["MI-04"] == (18 - 9) / 18  # table 5: on other sentences than those that chose
    assert values["VO-11"] == pytest.approx((1.324 + 1.02 + 1.138) / 3)
    assert isnan(values["MI-05"])  # a loss of BLEU from another BLEU
    # Encoding alone; the head chosen on the same sentences; the ends of a range.
    assert all(isnan(values[name]) for name in ("MI-14", "VO-07", "VO-22"))


def test_a_sum_is_one_number():
    """Table 1 marks 8 of 96 heads."""
    heads = claims()["MI-01"].printed["heads of the encoder with a significant effect"]
    assert (heads.numbers("michel"), heads.mean("michel")) == ([8], 8)


def test_readers_meet_words_and_no_keys():
    """Of what a paper prints and of statistics: no key of a table, and no part of one alone."""
    keys = {"delta", "dec_enc", "enc_self", "dec_self", "cv", "mt", "bert"}
    for name, claim in claims().items():
        for words in (*claim.printed, claim.statistic):
            parts = words.split()
            assert len(parts) > 1 and "_" not in words and not keys & set(parts), (name, words)


def test_areas_say_what_weighs_alike_in_them():
    """Steps in table michel_areas, heads in curves of headmask.csv."""
    heads = ("prunes_further", "unimportant_first_keeps_more")
    of = {"area_compared": "the steps of pruning", **dict.fromkeys(heads, "the numbers of heads")}
    told = [of[each.decide] in each.statistic for each in claims().values() if each.decide in of]
    assert told == [True] * 6  # HM-03, MI-08, MI-13, MI-16, MI-17, X-03


def test_thresholds_have_a_source():
    """Numbers among the limits; which table is read and the shares of the masks are no limits."""
    free = {"HM-07", "HM-08", "HM-13"}
    for name, claim in claims().items():
        numbers = [value for value in claim.limits.values() if type(value) in (int, float)]
        assert bool(claim.limits_from) or not numbers or name in free, name


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_one_training_decides_claims_about_models_alone(tmp_path, name):
    """What is planted for which a claim holds, of seed 1."""
    files = {
        path: [row for row in content if row.get("seed", 1) == 1] if isinstance(content, list)
        else content
        for path, content in PLANTED[name][0]().items()
        if "/seed2/" not in path and "/seed3/" not in path
    }  # fmt: skip
    found = decided(tmp_path, name, files)
    assert (found.verdict == HOLDS) == (claims()[name].about == "model"), found


def test_runs_that_would_decide_are_experiments():
    known = experiment_names(ROOT / "config")
    named = {each for claim in claims().values() for each in claim.needs.experiments}
    assert named and named <= set(known)


def test_experiments_for_claims_about_trainings_have_three():
    """Each its seeds, or all together three pairs; or the ledger says that seeds must be added."""
    for name, claim in claims().items():
        if claim.about == "trainings" and "seeds: [1, 2, 3]" not in claim.needs.run:
            found = [load_experiment(each, ROOT / "config") for each in claim.needs.experiments]
            enough = all(len(each.seeds) >= 3 for each in found)
            assert enough or sum(len(each.pairs) for each in found) >= 3, name


def test_curves_have_the_names_that_tables_give_them(tmp_path):
    told = decided(tmp_path, "MI-13", PLANTED["MI-13"][0]()).reason
    # 3 to the curve of encoder–decoder attention is nearer than 5.
    assert told == "decoder heads by importance against encoder–decoder heads by importance"


@pytest.mark.slow
def test_the_command_writes_a_verdict_for_each(tmp_path):
    folder = write_results(tmp_path / "planted", PLANTED["MI-03"][0]())
    assert run_script("claims", ["--results", folder, "--out", tmp_path / "out"]) == 0
    table = pd.read_csv(tmp_path / "out" / "claims.csv", keep_default_na=False)
    assert list(table["claim"]) == NAMES
    row = table[table["claim"] == "MI-03"].iloc[0]
    assert (row["verdict"], row["p"], row["p_adjusted"]) == ("holds", "0.001", "0.001")
    assert (row["experiments"], row["files"]) == ("planted", "planted/tables/michel_transfer.csv")
    about = json.loads((tmp_path / "out" / "claims.json").read_text())
    caption = "What results say of 65 claims of the papers: 1 holds, 64 undecided. From: planted."
    assert about["caption"] == caption
    check_caption("claims", caption)
