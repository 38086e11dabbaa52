"""Links by attention and their error rates, against weights and counts by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from single_links import word_links
from small_models import make_model

from headcount.base.addresses import Head
from headcount.data.word_links.links import LinkedPair
from headcount.heads.alignment import best_heads
from headcount.heads.alignment_rates import CASES, COLUMNS, count_links, error_rates, measure
from headcount.heads.attention_map import all_weights
from headcount.heads.linked_text import linked_text
from headcount.model.removal import remove_units

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


def vocabulary(pieces) -> list[int]:
    return [4 if piece == "." else int(piece) for piece in pieces]


SIDE = SimpleNamespace(marks=(["8"], ["5"]), vocabulary=SimpleNamespace(ids=vocabulary))
PAIRS = [
    LinkedPair([["4"], ["5", "6"], ["."]], [["9"], ["4", "10"]], [[0, 1]], [[0, 1], [1, 0]]),
    LinkedPair([["7", "7"], ["6"]], [["5"], ["6", "7"], ["."]], [[0, 0], [1, 2]], [[0, 0], [1, 2]]),
    LinkedPair([["6"]], [["8"], []], [[0, 1]], [[0, 1]]),  # a word that no piece begins in
]


def test_counts_follow_the_links_of_single_sentences():
    """By a second route: sentence by sentence, head by head, with sets of links."""
    model = make_model()
    text = linked_text(PAIRS, (SIDE, SIDE))
    heads = [head for head in model.grid.heads() if head.kind == "dec_enc"]
    pair = [1 / 2 if number in (1, 4) else 0 for number in range(len(heads))]
    mixtures = torch.tensor([pair]).expand(len(CASES), 1, -1)
    counts = count_links(model, text, mixtures, 100, abs)
    for row, case in enumerate(CASES):
        for number, sentence in enumerate(PAIRS):
            by_head = weights_of(model, text.ids, number, heads)
            if case[1] == "content":
                by_head = [renormalised(weights, sentence) for weights in by_head]
            systems = [*by_head, (by_head[1] + by_head[4]) / 2]
            for system, weights in enumerate(systems):
                expected = naive(weights, sentence, *case)
                assert counts[row, system, number].tolist() == expected, (case, number, system)


def weights_of(model, ids, number: int, heads: list[Head]) -> list[torch.Tensor]:
    by_layer = all_weights(model, ids.src[number], ids.tgt[number])
    return [by_layer[head.kind, head.layer][head.head] for head in heads]


def renormalised(weights: torch.Tensor, pair: LinkedPair) -> torch.Tensor:
    """Weights without the start, the marks and full stops, divided by their sum for every query."""
    text = [piece != "." for word in pair.source for piece in word]
    kept = weights * torch.tensor([False, *text, False, False])
    return kept / kept.sum(-1, keepdim=True)


def naive(weights: torch.Tensor, pair: LinkedPair, step: str, words: str) -> list[int]:
    """Counts by loops: a mark, words, a mark and the end are keys. <s> and the mark are read."""
    first = 1 if step == "output" else 2
    spans, start = [], 1
    for word in pair.source:
        spans.append(range(start, start := start + len(word)))
    keys = {n: span for n, span in enumerate(spans) if words == "all" or pair.source[n] != ["."]}
    if words == "all":
        keys |= {-1: range(1), -2: range(start, start + 1), -3: range(start + 1, start + 2)}
    found = set()
    for target, word in enumerate(pair.target):
        rows, first = range(first, first + len(word)), first + len(word)
        if word and (words == "all" or word != ["."]):
            sums = {n: sum(float(weights[r, k]) for r in rows for k in s) for n, s in keys.items()}
            found.add((max(sums, key=sums.get), target))
    found = {link for link in found if link[0] >= 0}
    counted = [
        {(s, t) for s, t in links if words == "all" or "." not in pair.source[s] + pair.target[t]}
        for links in (pair.sure, pair.possible)
    ]
    return [len(found & counted[0]), len(found & counted[1]), len(found), len(counted[0])]


def test_the_diagonal_links_words_in_the_same_place():
    text = linked_text(PAIRS[:1], (SIDE, SIDE))
    # Words of the target stand at 1/4 and 3/4, of the source at 1/6, 3/6 and 5/6.
    weights = text.diagonal([0], (2, 5))[0, 0]
    assert weights.argmax(-1).tolist() == [0, 2]
    assert weights[0].tolist() == pytest.approx([11 / 12, 3 / 4, 5 / 12, 0, 0])


def test_rates_by_hand():
    # 3 of 4 links possible, 2 sure, of 5 sure links: AER 1 - 5 / 9.
    assert error_rates(np.array([2, 3, 4, 5])) == pytest.approx([4 / 9, 3 / 4, 2 / 5])
    assert np.isnan(error_rates(np.zeros(4, int))).all()


def test_heads_are_ranked_on_one_half_and_judged_on_the_other():
    model = make_model()
    heads = [head for head in model.grid.heads() if head.kind == "dec_enc"]
    halves = [linked_text(part, (SIDE, SIDE)) for part in (PAIRS[:2], PAIRS[1:])]
    rows, best = measure(model, heads, halves, 100, abs)
    frame = pd.DataFrame([["gold", *row] for row in rows], columns=COLUMNS)
    none = torch.zeros(len(CASES), 0, len(heads))
    for half, columns in ((0, ["rank"]), (1, ["aer", "precision", "recall"])):
        counts = count_links(model, halves[half], none, 100, abs).sum(2)
        for (step, words), rates in zip(CASES, error_rates(counts), strict=True):
            chosen = (frame["step"] == step) & (frame["words"] == words)
            of_case = frame[chosen & (frame["system"] == "head")]
            if half:
                assert of_case[columns].to_numpy(float) == pytest.approx(rates[:-1], nan_ok=True)
            else:  # equal heads in flat order
                order = rates[: len(heads), 0].argsort(kind="stable")
                assert of_case["rank"].iloc[order].tolist() == [*range(1, len(heads) + 1)]
    assert best["4"] == [head.name() for head in best_heads(frame, 4)]
    assert set(best["layer"]) <= {head.name() for head in heads} and len(best["layer"]) == 2
    one = frame.query("system == 'mean' and k == 1 and step == 'output' and words == 'content'")
    first = frame.query("rank == 1 and step == 'output' and words == 'content'")
    assert one["aer"].tolist() == first["aer"].tolist()
    known = frame.dropna(subset=["aer", "low"])
    assert (known["low"] <= known["aer"]).all() and (known["aer"] <= known["high"]).all()


def test_a_model_without_cross_attention_has_the_diagonal_alone():
    model = make_model()
    kept = torch.tensor([float(head.kind != "dec_enc") for head in model.grid.heads()])
    halves = [linked_text(PAIRS, (SIDE, SIDE))] * 2
    rows, best = measure(remove_units(model, kept), [], halves, 100, abs)
    assert [row[2] for row in rows] == ["diagonal"] * len(CASES)
    assert best == {"layer": []}
