"""Differences of BLEU with intervals, held against sacreBLEU's own paired bootstrap."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from headcount.base.errors import UserError
from headcount.runs.bleu import score_corpus
from headcount.runs.bootstrap import compare_systems

REFERENCES = [f"the cat number {n} sat {'red ' * (n % 3)}on the mat {n * n}." for n in range(30)]
BASELINE = [line.replace("cat", "dog") if n % 4 == 0 else line for n, line in enumerate(REFERENCES)]
# One line better and one worse; every second line cut; nothing right.
NEAR = ["the cat number 0 sat on the mat 0.", "no word is", *BASELINE[2:]]
CUT = [line[: 20 + 10 * (n % 2)] for n, line in enumerate(REFERENCES)]
WRONG = ["x"] * 30


def test_scores_and_p_values_are_sacrebleus():
    found = compare_systems(BASELINE, [NEAR, CUT, WRONG], REFERENCES, "de", samples=300)
    for system, difference in zip((NEAR, CUT, WRONG), found, strict=True):
        named = [("baseline", BASELINE), ("system", system)]
        metric = BLEU(trg_lang="de", references=[REFERENCES])
        signatures, results = PairedTest(named, {"BLEU": metric}, None, "bs", 300)()
        before, after = results["BLEU"]
        assert difference.bleu == score_corpus(system, REFERENCES, "de")[0].score
        assert difference.delta == pytest.approx(after.score - before.score, abs=1e-12)
        assert difference.p_value == after.p_value
        assert difference.signature == str(signatures["BLEU"])
    assert 0.1 < found[0].p_value < 1 and found[1].p_value < 0.01
    assert found[2].bleu == 0


def test_a_better_system_has_the_opposite_difference_and_the_same_p():
    (worse,) = compare_systems(REFERENCES, [CUT], REFERENCES, "de", samples=200)
    (better,) = compare_systems(CUT, [REFERENCES], REFERENCES, "de", samples=200)
    assert worse.delta < -5 and worse.p_value <= 1 / 200
    assert (better.delta, better.low, better.high) == (-worse.delta, -worse.high, -worse.low)
    assert better.p_value == worse.p_value


def test_the_interval_lies_between_quantiles_of_resampled_texts():
    """Scored text by text: of 40 sorted differences, the second and the second from the end."""
    (found,) = compare_systems(BASELINE, [CUT], REFERENCES, "de", samples=40)
    drawn = np.random.default_rng(12345).choice(30, size=(40, 30), replace=True)
    differences = []
    for row in drawn:
        after, before = (
            score_corpus([text[i] for i in row], [REFERENCES[i] for i in row], "de")[0].score
            for text in (CUT, BASELINE)
        )
        differences.append(after - before)
    differences.sort()
    assert found.low == pytest.approx(differences[1], abs=1e-9)
    assert found.high == pytest.approx(differences[38], abs=1e-9)
    assert found.low < found.delta < found.high < 0


def test_one_sentence_has_no_spread():
    (found,) = compare_systems(["a b c d x"], [["a b c d e"]], ["a b c d e"], "de", samples=40)
    # 100 against the 4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 fours that are right.
    delta = 100 - 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert (found.delta, found.low, found.high) == pytest.approx((delta, delta, delta))


def test_a_system_equal_to_the_baseline_does_not_differ():
    (found,) = compare_systems(BASELINE, [BASELINE], REFERENCES, "de", samples=40)
    assert (found.delta, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_f17_unequal_lengths_are_refused():
    told = "found 29 translations and 30 references"
    with pytest.raises(UserError, match=told):
        compare_systems(BASELINE, [CUT, NEAR[1:]], REFERENCES, "de")
    with pytest.raises(UserError, match=told):
        compare_systems(BASELINE[1:], [CUT], REFERENCES, "de")
