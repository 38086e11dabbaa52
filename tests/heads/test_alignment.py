"""Links by attention and their error rates, against weights and counts by hand."""

import pandas as pd
import torch

from headcount.base.addresses import Head
from headcount.heads.alignment import best_heads, word_links

# Source: a b@@ c </s>, words a and bc. Target: x@@ y z, read after <s>, words xy and z.
WEIGHTS = torch.tensor(
    [
        [0.3, 0.2, 0.2, 0.3],  # <s>, predicts x@@
        [0.4, 0.3, 0.2, 0.1],  # x@@, predicts y
        [0.1, 0.0, 0.1, 0.8],  # y, predicts z
        [0.0, 0.5, 0.5, 0.0],  # z, predicts the end
    ]
)
SOURCE, TARGET = [1, 2], [2, 1]


def test_links_follow_the_largest_weight_between_words():
    # Output step: xy has (0.3 + 0.4) / 2 on a and (0.4 + 0.5) / 2 on bc. z has 0.1 on both, and the
    # end, 0.8, is no word.
    assert word_links(WEIGHTS, SOURCE, TARGET, "output")[0] == (1, 0)
    # Input step: xy has (0.4 + 0.1) / 2 on a, (0.5 + 0.1) / 2 on bc. z has 0 and 1.
    assert word_links(WEIGHTS, SOURCE, TARGET, "input") == [(1, 0), (1, 1)]


def test_pieces_of_a_source_word_are_summed_not_averaged():
    weights = torch.tensor([[0.4, 0.3, 0.3, 0.0], [0.0, 0.0, 0.0, 1.0]])
    assert word_links(weights, [1, 2], [1], "output") == [(1, 0)]


def test_marks_between_start_and_text_are_no_words():
    # A language code on both sides: <s> code x, and code a b </s>.
    weights = torch.tensor(
        [[1.0, 0, 0, 0], [0.5, 0.1, 0.4, 0], [0.5, 0.4, 0.1, 0]]  # <s>; code, predicts x; x
    )
    assert word_links(weights, [1, 1], [1], "output") == [(1, 0)]
    assert word_links(weights, [1, 1], [1], "input") == [(0, 0)]


def test_words_without_weight_or_pieces_are_not_linked():
    weights = torch.tensor([[0.0, 0.0, 1.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]])
    assert word_links(weights, [1, 0, 1], [1, 0, 1], "output") == [(2, 2)]
    assert word_links(torch.ones(1, 1), [], [], "output") == []
    assert word_links(torch.ones(1, 2) / 2, [1], [0], "input") == []


def test_best_heads_follow_their_ranks_on_the_sentences_that_choose():
    rows = [
        ("output", "content", "head", "dec_enc", 0, 0, 3, 0.1),
        ("output", "content", "head", "dec_enc", 0, 1, 2, 0.5),
        ("output", "content", "head", "dec_enc", 1, 0, 1, 0.3),
        ("output", "content", "layer", "dec_enc", 1, float("nan"), float("nan"), 0.0),
        ("input", "content", "head", "dec_enc", 0, 0, 1, 0.0),
        ("output", "all", "head", "dec_enc", 0, 0, 1, 0.0),
    ]
    columns = ["step", "words", "system", "kind", "layer", "head", "rank", "aer"]
    frame = pd.DataFrame(rows, columns=columns)
    one, two, three = Head("dec_enc", 1, 0), Head("dec_enc", 0, 1), Head("dec_enc", 0, 0)
    assert best_heads(frame, 2) == [one, two]
    assert best_heads(frame, 4) == [one, two, three]
    assert best_heads(frame, 1, layer=0) == [two]
