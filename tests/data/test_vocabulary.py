"""Vocabularies: ids by count, the same file back and forth, bad files named by line."""

from collections import Counter

import pytest

from headcount.base.errors import UserError
from headcount.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary


def test_ids_follow_counts_then_code_points():
    # b 3 times; ä, a and Z twice each: Z (U+005A) before a (U+0061) before ä (U+00E4); c once.
    words = Vocabulary.of(Counter(["b", "ä", "a", "b", "c", "Z", "a", "b", "Z", "ä"]))
    assert words.counts == [("b", 3), ("Z", 2), ("a", 2), ("ä", 2), ("c", 1)]
    assert len(words) == 4 + 5
    assert words.ids(["b", "Z", "a", "ä", "c", "x"]) == [4, 5, 6, 7, 8, UNK]


def test_special_ids_are_the_first_four_and_text_cannot_name_one():
    words = Vocabulary.of(Counter(["<s>", "</s>", "a"]))
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert words.pieces(range(7)) == ["<pad>", "<s>", "</s>", "<unk>", "</s>", "<s>", "a"]
    assert words.ids(["<pad>", "<s>", "</s>"]) == [UNK, 5, 4]


def test_written_and_read(tmp_path):
    words = Vocabulary([("lo@@", 12), ("a\u2028b", 3), ("\\20;", 1)])
    words.save(tmp_path / "v")
    assert (tmp_path / "v").read_bytes() == "lo@@ 12\na\u2028b 3\n\\20; 1\n".encode()
    assert Vocabulary.load(tmp_path / "v").counts == words.counts


@pytest.mark.parametrize("bad", ["word", "word x", " 3", "word -1", "", "<html>"])
def test_a_bad_line_is_named(tmp_path, bad):
    path = tmp_path / "words"
    path.write_text(f"a 3\n{bad}\nb 1\n")
    with pytest.raises(UserError, match=r"words:2: expected 'piece count', found"):
        Vocabulary.load(path)
