"""Claims on models whose parts are unlike: kinds, layers, test sets, checkpoints, signs."""

import pytest
from planted_claims import PLANTED, decided
from planted_files import kept_at_40, profiles
from planted_heads import decoder_layers, heads_with, kinds_left, roles

from headcount.findings.claims.verdicts import FAILS, HOLDS, UNDECIDED

FIG9 = "figures/voita_fig9.csv"


def test_kinds_of_unlike_sizes_are_compared_by_shares(tmp_path):
    """The encoder loses about half of 96 heads, the others next to nothing of 16 each."""
    points, sizes = [(55, 15, 16), (50, 14, 16), (45, 13, 15)], (96, 16, 16)
    found = decided(tmp_path / "lost", "VO-17", {FIG9: kinds_left(points, sizes=sizes)})
    assert found.verdict == HOLDS
    gaps = [16 / 16 - 55 / 96, 16 / 16 - 50 / 96, 15 / 16 - 45 / 96]
    assert found.value == pytest.approx(sum(gaps) / 3)
    # n of N left: variance n (N − n) / (N (N − 1)) · (1 / 16 + 1 / 96), the largest of 73 of 128.
    half = 1.96 * (73 * 55 / (128 * 127) * (1 / 16 + 1 / 96)) ** 0.5
    assert found.high - found.value == pytest.approx(half, abs=1e-4)
    halves = [(8, 24, 24), (6, 18, 18), (4, 12, 12)]
    found = decided(tmp_path / "alike", "VO-17", {FIG9: kinds_left(halves, sizes=(16, 48, 48))})
    assert (found.verdict, found.value) == (UNDECIDED, 0)


def test_decoder_self_attention_stands_where_its_share_does(tmp_path):
    """A quarter, a half and three quarters left of each kind, in a model of 48 of each or fewer."""
    rows = []
    for pair, sizes in (("wmt_en_ru.en-ru", (48, 48, 48)), ("opensubtitles.en-ru", (48, 24, 24))):
        left = [(12 + seed, sizes[1] // 2, 3 * sizes[2] // 4) for seed in (0, 1, 2)]
        for seed, point in enumerate(left, start=1):
            rows += kinds_left([point], (seed,), pair, sizes)
    found = decided(tmp_path, "VO-18", {FIG9: rows})
    assert (found.verdict, found.value) == (UNDECIDED, pytest.approx(0))


def test_a_group_of_two_layers_counts_twice(tmp_path):
    """Half of each of five layers left: (0.5 · 8 + 2.5 · 8 + 4 · 4) / 20 = 2, which is the middle.

    The mean of the groups' places, 2.33, is not.
    """
    files = decoder_layers((8, 8, 4), (2, 10, 8))
    places = ["0–1", "2–3", "4"] * 2
    rows = zip(files["figures/voita_fig10.csv"], places, strict=True)
    rows = [row | {"layers": place, "pruned": 20} for row, place in rows]
    found = decided(tmp_path, "VO-19", {"figures/voita_fig10.csv": rows})
    assert found.reason.endswith("1 points; mean layers 2.00 and 2.90")
    assert (found.verdict, found.value) == (UNDECIDED, pytest.approx(0.9))
    # Of 20 in 40: (2 · 1.5² + 2 · 0.5² + 2²) / 5 = 1.8 a head, twice; · 20 / 39 drawn so.
    half = 1.96 * (2 * 1.8 / 20 * 20 / 39) ** 0.5
    assert found.high - found.value == pytest.approx(half, abs=1e-4)


def test_a_first_checkpoint_without_a_profile_is_not_passed_over(tmp_path):
    """At BLEU 1.2 there is no profile: the change from the second checkpoint is another one."""
    late = {"r_squared": 0.8, "end_mass": 0.7}
    rows = profiles(late)["tables/michel_training.csv"]
    none = {"bleu": 1.2, "r_squared": "", "end_mass": ""}
    weak = [row | {"update": 0} | none for row in rows if row["update"] == 1]
    found = decided(tmp_path / "all", "MI-11", {"tables/michel_training.csv": [*weak, *rows]})
    assert (found.verdict, found.reason) == (UNDECIDED, "the first checkpoint has BLEU below 2")
    found = decided(tmp_path / "one", "MI-11", {"tables/michel_training.csv": [*weak[:1], *rows]})
    assert (found.verdict, found.seeds) == (UNDECIDED, 2)


@pytest.mark.parametrize("before", [(), (10,)])
def test_what_the_first_checkpoint_keeps_is_not_out_of_reach(tmp_path, before):
    """90 % stay at update 100 of 1000, 75 % at 400; update 10 may have no profile."""
    files = kept_at_40({100: 90, 400: 75, 1000: 92})
    rows = files["tables/michel_training.csv"]
    empty = dict.fromkeys(("kept_40", "kept_low_40", "kept_high_40"), "")
    rows = [rows[0] | {"update": update} | empty for update in before] + rows
    found = decided(tmp_path, "MI-12", {"tables/michel_training.csv": rows})
    assert found.verdict == UNDECIDED


@pytest.mark.parametrize("name", ["MI-01", "MI-04"])
def test_a_test_set_of_few_sentences_may_fail_but_not_leave_open(tmp_path, name):
    """461 sentences beside 1,000 of which the claim holds; alone they decide nothing."""
    holds, fails = (each() for each in PLANTED[name])
    table, facts = holds
    for folder, small, verdict in (("same", holds, HOLDS), ("other", fails, UNDECIDED)):
        rows = holds[table] + [row | {"test_set": "small"} for row in small[table]]
        sizes = {"sentences": {"test": 1000, "small": 461}}
        assert decided(tmp_path / folder, name, {table: rows, facts: sizes}).verdict == verdict
    few = holds | {facts: {"sentences": {"test": 461}}}
    assert decided(tmp_path / "alone", name, few).verdict == UNDECIDED


def test_relevance_below_0_counts_by_its_size(tmp_path):
    """−0.5 ± 0.01 and 0.2 ± 0.01: 2.5, from 0.49 / 0.21 to 0.51 / 0.19; 0.5 is 2 means of 0.25."""
    relevance = [-0.5, 0.2, 0.15, 0.15]
    found = decided(tmp_path / "one", "VO-11", roles(heads_with(relevance=relevance), 3))
    assert (found.verdict, found.value) == (HOLDS, pytest.approx(2.5))
    assert (found.low, found.high) == pytest.approx((0.49 / 0.21, 0.51 / 0.19))
    found = decided(tmp_path / "few", "VO-01", roles(heads_with(relevance=relevance), 3))
    assert (found.verdict, found.value) == (HOLDS, pytest.approx(2))
    assert (found.low, found.high) == pytest.approx((0.49 / 0.25, 0.51 / 0.25))
    nearly = roles(heads_with(relevance=[-0.5, 0.005, 0.005, 0.005]), 3)
    found = decided(tmp_path / "open", "VO-11", nearly)
    assert found.low == pytest.approx(0.49 / 0.015) and found.high != found.high


def test_a_head_that_leads_and_is_sure_does_not_refute(tmp_path):
    """It is the same head in every model, but confident: neither as the claim says nor another."""
    heads = heads_with(
        relevance=[0.4, 0.2, 0.2, 0.2],
        rare_two_rarest=[0.8, 0.1, 0.1, 0.1],
        confidence=[0.9, 0.5, 0.5, 0.5],
    )
    found = decided(tmp_path / "sure", "VO-03", roles(heads, 3))
    assert (found.verdict, found.value) == (UNDECIDED, 0)
    for head in heads:
        head["rare_two_rarest"] = 0.9 - head["rare_two_rarest"]
    assert decided(tmp_path / "other", "VO-03", roles(heads, 3)).verdict == FAILS
