"""Attention to special tokens, codes and punctuation, and measures without them."""

import numpy as np
import pytest
import torch
from planted import RARE, TEXT, UNIFORM, planted_model

from headcount.base.addresses import HeadGrid
from headcount.data.batches import ParallelText
from headcount.data.bpe import PieceCutter, Segmenter
from headcount.data.sentencepieces import Marks, RunningPieces
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.data.words import Tokeniser, is_punctuation
from headcount.heads.head_measures import POSITION_COLUMNS, add_up, views
from headcount.heads.sinks import CODE, CONTENT, PUNCTUATION, SPECIAL, Sinks, token_classes

WORD, MARK = CONTENT, PUNCTUATION
GRID = HeadGrid({"enc_self": (1,), "dec_self": (1,), "dec_enc": (2,)})
# Source: code, two words, a stop. The second pair has no word.
CLASSES = [[CODE, WORD, WORD, MARK], [MARK]], [[WORD, MARK], [MARK]]
PAIRS = ParallelText([[9, 4, 5, 6], [6]], [[4, 6], [6]])
BATCH = PAIRS.batch([0, 1])


def measured(kind: str, weights: list, number: int = 2) -> Sinks:
    """Return sinks by the weights [heads, queries, keys] of the first pair. The second has 0."""
    of_pair = torch.tensor(weights)
    sinks = Sinks(GRID, [list(map(torch.tensor, side)) for side in CLASSES], PAIRS.longest)
    sinks.start(BATCH, views(BATCH))
    both = torch.stack([of_pair, torch.zeros_like(of_pair)])
    sinks.add(kind, 0, both, views(BATCH)[kind])
    return sinks


def places(sinks: Sinks) -> list[tuple]:
    rows = sinks.positions.rows(GRID.heads(), "share_content", sinks.parked())
    named = [dict(zip(POSITION_COLUMNS, row, strict=True)) for row in rows]
    return [(row["offset"], row["hits"], row["trials"], row["counted"]) for row in named]


def test_shares_count_all_queries_and_other_measures_only_words():
    sinks = measured("enc_self", [[
        [0.4, 0.2, 0.1, 0.1, 0.2], [0.1, 0.3, 0.1, 0.1, 0.4], [0.3, 0.3, 0.1, 0.1, 0.2],
        [0.2, 0.1, 0.1, 0.2, 0.4], [0.0, 0.0, 0.0, 0.0, 1.0],
    ]])  # fmt: skip
    found = {name: values[0] for name, values in sinks.means().items()}
    # Five queries are no end: those of the first pair, and the stop of the second with 0.
    assert found["sink_special"] == pytest.approx((0.2 + 0.4 + 0.2 + 0.4) / 5)
    assert found["sink_code"] == pytest.approx((0.4 + 0.1 + 0.3 + 0.2) / 5)
    assert found["sink_punctuation"] == pytest.approx((0.1 + 0.1 + 0.1 + 0.2) / 5)
    # Both words: 0.3 and 0.1 of the words, which is 3/4 and 1/4. Both point at the first.
    assert found["confidence_content"] == pytest.approx(0.75)
    assert found["entropy_content"] == pytest.approx(np.log(4) - 0.75 * np.log(3))
    assert places(sinks) == [(-1, 1, 1, 0), (0, 1, 2, 0)]


def test_a_head_counts_by_words_from_more_than_half_on_ends_and_codes():
    on_end = [[0.1, 0.1, 0.1, 0.1, 0.6]] * 3
    on_code = [[0.6, 0.1, 0.1, 0.1, 0.1]] * 3
    sinks = measured("dec_enc", [on_end, on_code])
    # Of three queries the start is left out; the other pair's stop has 0: half of 0.7 each.
    means = sinks.means()
    first, second = (GRID.span("dec_enc", 0).start + n for n in (0, 1))
    assert means["sink_special"][[first, second]] == pytest.approx([0.4, 2 / 30])
    assert means["sink_code"][[first, second]] == pytest.approx([2 / 30, 0.4])
    assert not sinks.parked()[[first, second]].any()
    assert means["confidence_content"][[first, second]] == pytest.approx([0.5, 0.5])
    more = measured("dec_enc", [[[0.2, 0, 0.1, 0, 0.7]] * 3, [[0, 0.9, 0.1, 0, 0]] * 3]).means()
    assert more["content"][[first, second]].tolist() == [1, 0]
    # Rows of 0.9 in two of three queries: 0.6 of the attention. One word has all the rest.
    assert more["confidence_content"][[first, second]] == pytest.approx([1, 0.9])


def test_a_planted_uniform_head_is_uniform_over_words():
    model = planted_model()
    classes = [[torch.full((len(ids),), WORD) for ids in side] for side in (TEXT.src, TEXT.tgt)]
    sinks = Sinks(model.grid, classes, TEXT.longest)
    add_up([sinks], model, TEXT, 4096)
    means = sinks.means()
    # 6, 3 and 5 words with the end beside them.
    assert means["sink_special"][UNIFORM] == pytest.approx((6 / 7 + 3 / 4 + 5 / 6) / 14)
    assert means["confidence_content"][UNIFORM] == pytest.approx(3 / 14)
    logs = 6 * np.log(6) + 3 * np.log(3) + 5 * np.log(5)
    assert means["entropy_content"][UNIFORM] == pytest.approx(logs / 14)
    assert means["confidence_content"][RARE] == pytest.approx(1)


def test_words_of_punctuation_are_told_from_pieces_within_words():
    pieces = ["do@@", "'@@", "t", ".@@", ".", "<unk>", "\\5c;", "€"]
    words = Vocabulary([(piece, 1) for piece in dict.fromkeys(pieces[:5] + pieces[6:])])
    cut = Segmenter(Tokeniser("en", True, "none"), PieceCutter("#version: 0.2\n"), words)
    (found,) = token_classes(cut, [words.ids(pieces)])
    assert words.ids(pieces)[5] == UNK
    assert found.tolist() == [WORD, WORD, WORD, MARK, MARK, WORD, MARK, MARK]


def test_the_mark_of_a_target_language_is_a_code():
    words = Vocabulary([("<2de>", 1), ("<3", 1)])
    marks = Marks(["<2de>"], special=["<2de>"])
    cutter = PieceCutter("#version: 0.2\n")
    cut = Segmenter(Tokeniser("en", True, "none"), cutter, words, marks=marks)
    (found,) = token_classes(cut, [words.ids(["<2de>", "<3"])])
    assert found.tolist() == [CODE, WORD]


def test_codes_and_names_of_running_text_are_no_words():
    pieces = ["__de__", "<mask>", "▁ja", ",", "▁", "▁don", "'", "t"]
    words = Vocabulary([(piece, 1) for piece in pieces])
    marks = Marks(("__de__",), special=("__de__", "<mask>"))

    def join(parts: list[str]) -> str:
        return "".join(parts).replace("▁", " ")

    running = RunningPieces("de", words, marks, str, lambda line: [], join)
    (found,) = token_classes(running, [words.ids(pieces)])
    assert found.tolist() == [CODE, SPECIAL, WORD, MARK, MARK, WORD, MARK, WORD]


@pytest.mark.parametrize("word", ["...", "«", "、", "€", "--", "&"])
def test_signs_are_punctuation(word):
    assert is_punctuation(word)


@pytest.mark.parametrize("word", ["z.B.", "5", "don't", "\ufffd", "़"])
def test_letters_digits_and_broken_bytes_are_none(word):
    assert not is_punctuation(word)
