"""Sentence pairs as they are read from the folder of a segmented pair."""

import pytest

from headcount.base.errors import UserError
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.store.pair_folder import PairFolder


@pytest.fixture
def pair(tmp_path):
    """Writes both sides of `dev`, whose pieces are known; returns the folder."""
    Vocabulary([("lo@@", 3), ("w", 2), ("w\u2028", 1)]).save(tmp_path / "src.vocab")
    Vocabulary([("a", 2), ("b", 1)]).save(tmp_path / "tgt.vocab")

    def written(src, tgt):
        (tmp_path / "dev.src").write_bytes(src.encode())
        (tmp_path / "dev.tgt").write_bytes(tgt.encode())
        return PairFolder(tmp_path)

    return written


def test_reading_both_sides(pair):
    text = pair("lo@@ w\n\nw\u2028 x\n", "b\na\nb a\n").read("dev")
    assert text == ParallelText([[4, 5], [], [6, UNK]], [[5], [4], [5, 4]])
    assert len(text) == 3


def test_f17_sides_of_unequal_length_are_refused(pair):
    with pytest.raises(UserError, match=r"dev\.src has 3 lines, .*dev\.tgt has 2; make them again"):
        pair("w\nw\nw\n", "a\na\n").read("dev")


def test_first_pairs_are_those_whose_source_has_a_word(pair):
    folder = pair("\nw\nw w\nw\n", "a a\n\na\na\n")
    assert folder.first_pairs("dev", 2) == ParallelText([[5], [5, 5]], [[], [4]])
    assert len(folder.first_pairs("dev", None)) == 3
    with pytest.raises(UserError, match=r"dev\.src: expected sentences, found none with a word"):
        pair("\n\n\n\n", "a a\n\na\na\n").first_pairs("dev", 2)
