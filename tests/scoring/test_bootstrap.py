"""Differences of BLEU with intervals, held against sacreBLEU's own paired bootstrap."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from headcount.base.errors import UserError
from headcount.scoring import bootstrap
from headcount.scoring.bleu import score_corpus
from headcount.scoring.bootstrap import bleu_of_counts, compare_systems, resample_bleu

REFERENCES = [f"the cat number {n} sat {'red ' * (n % 3)}on the mat {n * n}." for n in range(30)]
BASELINE = [line.replace("cat", "dog") if n % 4 == 0 else line for n, line in enumerate(REFERENCES)]
# One line better and one worse; every second line cut; nothing right.
NEAR = ["the cat number 0 sat on the mat 0.", "no word is", *BASELINE[2:]]
CUT = [line[: 20 + 10 * (n % 2)] for n, line in enumerate(REFERENCES)]
WRONG = ["x"] * 30


# Each sentence has its best match among its references.
SECOND = [line.replace("mat", "rug").replace("red ", "") for line in REFERENCES]


@pytest.mark.parametrize("streams", [[REFERENCES], [REFERENCES, SECOND]], ids=len)
def test_scores_and_p_values_are_sacrebleus(streams):
    targets = ["\t".join(row) for row in zip(*streams, strict=True)]
    systems = [NEAR, CUT, WRONG, SECOND]
    found = compare_systems(BASELINE, systems, targets, "de", samples=300)
    for system, difference in zip(systems, found, strict=True):
        named = [("baseline", BASELINE), ("system", system)]
        metric = BLEU(trg_lang="de", references=streams)
        signatures, results = PairedTest(named, {"BLEU": metric}, None, "bs", 300)()
        before, after = results["BLEU"]
        bleu, chrf = score_corpus(system, targets, "de")
        assert difference.score == bleu.score == after.score
        assert difference.delta == pytest.approx(after.score - before.score, abs=1e-12)
        assert difference.p_value == after.p_value
        assert difference.signature == str(signatures["BLEU"])
        assert chrf.score == CHRF().corpus_score(system, streams).score
        for signature in (bleu.signature, chrf.signature, difference.signature):
            assert signature.startswith(f"nrefs:{len(streams)}|")
    assert 0.1 < found[0].p_value < 1 and found[1].p_value < 0.01 and found[2].score == 0
    assert (found[3].score == pytest.approx(100)) == (len(streams) == 2)


def test_references_must_be_as_many_in_every_line():
    targets = [f"{line}\tx" for line in REFERENCES]
    with pytest.raises(UserError, match="expected 2 references .* 1 in line 7"):
        score_corpus(NEAR, [*targets[:6], REFERENCES[6], *targets[7:]], "de")


def test_the_interval_lies_between_quantiles_of_resampled_texts():
    """Scored text by text: of 40 sorted differences, the second and the second from the end."""
    (found,) = compare_systems(BASELINE, [CUT], REFERENCES, "de", samples=40)
    drawn = np.random.default_rng(12345).choice(30, size=(40, 30), replace=True)
    metric, differences = BLEU(trg_lang="de"), []
    for row in drawn:
        golden = [REFERENCES[i] for i in row]
        after, before = (
            metric.corpus_score([text[i] for i in row], [golden]).score for text in (CUT, BASELINE)
        )
        differences.append(after - before)
    differences.sort()
    assert found.low == pytest.approx(differences[1], abs=1e-9)
    assert found.high == pytest.approx(differences[38], abs=1e-9)
    assert found.low < found.delta < found.high < 0


def test_more_resamples_than_are_in_memory_at_once(monkeypatch):
    """Blocks of 70 give what one block of 300 gives."""
    whole = resample_bleu([BASELINE, CUT], REFERENCES, "de", samples=300)
    monkeypatch.setattr(bootstrap, "_BLOCK", 70)
    assert whole.shape == (2, 301)
    assert resample_bleu([BASELINE, CUT], REFERENCES, "de", 300) == pytest.approx(whole, abs=1e-9)


def split(row: np.ndarray) -> tuple[list[int], list[int], int, int]:
    """Matches, n-grams, words of the system, words of the reference."""
    return row[2:6].tolist(), row[6:].tolist(), int(row[0]), int(row[1])


def test_bleu_of_counts_is_sacrebleus():
    """Counts with and without matches in every order, system shorter and longer, or empty."""
    generator = np.random.default_rng(1)
    ngrams = np.sort(generator.integers(0, 12, (300, 4)), axis=1)[:, ::-1]
    matches = np.sort(generator.integers(0, ngrams + 1), axis=1)[:, ::-1]
    lengths = np.column_stack([ngrams[:, 0], generator.integers(1, 14, 300)])
    counts = np.column_stack([lengths, np.minimum(matches, ngrams), ngrams])
    expected = [BLEU.compute_bleu(*split(row), smooth_method="exp").score for row in counts]
    assert bleu_of_counts(counts.astype(float)) == pytest.approx(expected, abs=1e-9)
    assert (counts[:, 2:6] == 0).any(axis=0).all() and sum(score > 0 for score in expected) > 100


def test_one_sentence_has_no_spread_and_a_system_does_not_differ_from_itself():
    (found,) = compare_systems(["a b c d x"], [["a b c d e"]], ["a b c d e"], "de", samples=40)
    # 100 against the 4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 fours that are right.
    delta = 100 - 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert (found.delta, found.low, found.high) == pytest.approx((delta, delta, delta))
    (same,) = compare_systems(BASELINE, [BASELINE], REFERENCES, "de", samples=40)
    assert (same.delta, same.low, same.high, same.p_value) == (0, 0, 0, 1)


def test_f17_unequal_lengths_are_refused():
    told = "found 29 translations and 30 references"
    with pytest.raises(UserError, match=told):
        compare_systems(BASELINE, [CUT, NEAR[1:]], REFERENCES, "de")
    with pytest.raises(UserError, match=told):
        compare_systems(BASELINE[1:], [CUT], REFERENCES, "de")
