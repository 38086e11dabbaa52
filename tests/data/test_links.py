"""Word links: from lines of a file to pieces of the words that a model reads."""

from pathlib import Path

import pytest

from headcount.base.errors import UserError
from headcount.data.bpe import PieceCutter, Segmenter
from headcount.data.fetching.download import fetch_corpus
from headcount.data.lines import FoundText
from headcount.data.vocabulary import Vocabulary
from headcount.data.word_links.links import (
    GoldLinks,
    LinkedPair,
    find_links,
    linked_pairs,
    read_linked,
    write_linked,
)
from headcount.data.words import Tokeniser

SRC = ["a dog sees", "", "don't"]
TGT = ["hund ser\ten hund ser", "", "ikke gjør"]


def segmenter(language: str, moses: bool = False) -> Segmenter:
    """Cuts every word into characters."""
    tokeniser = Tokeniser(language, not moses, "none")
    return Segmenter(tokeniser, PieceCutter("#version: 0.2\n"), Vocabulary([]))


@pytest.fixture
def cut(tmp_path: Path):
    def pairs(lines: str, swapped: bool = False, moses: bool = False) -> list[LinkedPair]:
        texts = tmp_path / "t.src", tmp_path / "t.tgt"
        for path, side in zip(texts, (SRC, TGT), strict=True):
            path.write_text("".join(f"{line}\n" for line in side))
        (tmp_path / "t.links").write_text(lines)
        sides = segmenter("en", moses), segmenter("no", moses)
        links = GoldLinks(FoundText(tmp_path / "t.links"), swapped)
        return list(linked_pairs(links, texts, sides))

    return pairs


def test_links_are_sure_or_possible_and_words_are_in_pieces(cut, tmp_path):
    pairs = cut("1-0 2?1 2-1 0p0\n\n0-0 0-1\n")
    first, empty, last = pairs
    assert first.source == [["a"], ["d@@", "o@@", "g"], ["s@@", "e@@", "e@@", "s"]]
    assert len(first.target) == 2  # of the first reference
    assert (first.sure, first.possible) == ([(1, 0), (2, 1)], [(0, 0), (1, 0), (2, 1)])
    assert empty == LinkedPair([], [], [], [])
    assert last.sure == [(0, 0), (0, 1)]
    write_linked(tmp_path / "t.jsonl", iter(pairs))
    assert [pair.source for pair in read_linked(tmp_path / "t.jsonl", 2)] == [first.source, []]
    assert read_linked(tmp_path / "t.jsonl")[2].sure == [[0, 0], [0, 1]]


def test_links_of_the_other_direction_are_turned_round(cut):
    assert cut("1-2\n\n1p0\n", swapped=True)[0].sure == [(2, 1)]


def test_words_between_spaces_keep_their_numbers_where_text_is_tokenised(cut):
    """Moses would make two words of don't: its link is of both."""
    assert cut("\n\n0-1\n", moses=True)[2].source == [["d@@", "o@@", "n", "'@@", "t"]]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("0-0\n\n", "expected 3 lines, as in .*t.src, found 2"),
        ("0-0\n\n0-0\n\n", "expected 3 lines, as in .*t.src, found 4"),
        ("0-0\n\n0-0 0:1\n", "t.links:3: expected links .* found '0:1'"),
        ("-1-0\n\n\n", "t.links:1: expected links"),
        ("2-1 3-1\n\n\n", "t.links:1: 3-1: this line pair has 3 and 2 words"),
        ("0-2\n\n\n", "t.links:1: 0-2: "),
        ("\n0-0\n\n", "t.links:2: 0-0: .* 0 and 0 words"),
    ],
)
def test_faults_name_file_and_line(cut, lines, words):
    with pytest.raises(UserError, match=words):
        cut(lines)


def test_links_of_a_corpus_come_with_its_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("t.en", "t.no", "my.links"):
        Path(name).write_text(f"{name}\n")
    sides = {"en": {"path": "t.en"}, "no": {"path": "t.no"}}
    entry = {"splits": {"t": sides}, "links": {"t": {"en-no": {"path": "my.links"}}}}
    fetch_corpus("own", entry, tmp_path / "raw")
    raw = tmp_path / "raw/manifest.json"
    straight, turned = find_links(raw, "t", "en", "no"), find_links(raw, "t", "no", "en")
    assert [*straight.text.lines()] == ["my.links"]
    assert (straight.swapped, turned.swapped) == (False, True)
    assert straight.text == turned.text
    with pytest.raises(UserError, match="expected links of t for en-de, found en-no"):
        find_links(raw, "t", "en", "de")
    assert find_links(tmp_path / "my.gdfa", "t", "en", "de").text.path.name == "my.gdfa"


def test_raw_links_are_refused_in_place_of_linked_pairs(tmp_path):
    (tmp_path / "t.links").write_text("0-0 1-1\n")
    with pytest.raises(UserError, match="t.links: .* make it by scripts/links.py"):
        read_linked(tmp_path / "t.links")
