"""Alignment error rates of a T5 that stays in its library, against loops over its own weights."""

import pytest
import torch
from small_hooked import small_hooked, small_text
from transformers import T5Tokenizer

from headcount.base.errors import UserError
from headcount.library.linking import alignment_frame
from headcount_hf.hooks.hooked_links import read_linked

# Every other pair ranks heads.
SOURCES = [
    line.split() for line in ("ab ca .", "c a . cb", "b . cab", "a a ca", "a b", "ba c ab .")
]
TARGETS = [line.split() for line in ("a cb .", "ab . c", "ca b", "c ab .", "cc b", ". ab a c")]
LINKS = ["0-0", "0-0 2-1 3p2", "0p1 2-0", "2-0 0-1 0p2", "1-0 0p1", "3-0 2-1 0-2 1p3 0p1"]
VOCABULARY = [(piece, 0) for piece in ("<pad>", "</s>", "<unk>", "▁", *"abc.:")]
CUT = {"is_split_into_words": True}


def counts(weights, number: int, step: str, words: str) -> tuple[int, ...]:
    """Of one pair: a word is a mark and its letters, and so is the prompt, `ba:`."""
    source, target = SOURCES[number], TARGETS[number]
    query, found, used = int(step == "input"), set(), {"all": "abc.", "content": "abc"}[words]
    if words == "content":
        text = [word[0] in used for word in source for _ in f"▁{word}"]
        weights = weights * torch.tensor([False] * 4 + text + [False])
        weights = weights / weights.sum(-1, keepdim=True)
    for t, word in enumerate(target):
        rows, query, key = weights[query : query + len(word) + 1], query + len(word) + 1, 4
        sums = {-2 - k: rows[:, k].sum() for k in (0, 1, 2, 3, -1) if words == "all"}
        for s, other in enumerate(source):
            if other[0] in used:
                sums[s] = rows[:, key : key + len(other) + 1].sum()
            key += len(other) + 1
        if word[0] in used and (best := max(sums, key=sums.get)) >= 0:
            found.add((best, t))
    given = [(int(x[0]), int(x[2]), x[1]) for x in LINKS[number].split()]
    given = [x for x in given if source[x[0]][0] in used and target[x[1]][0] in used]
    sure, possible = ({x[:2] for x in given if x[2] in marks} for marks in ("-", "-p"))
    return len(found & sure), len(found & possible), len(found), len(sure)


@torch.no_grad()
def test_rates_are_those_of_the_librarys_own_weights():
    tokenizer, eager = T5Tokenizer(vocab=VOCABULARY, extra_ids=0), small_hooked("t5", "eager")
    words = tokenizer([["ba:", *line] for line in SOURCES], **CUT), tokenizer(TARGETS, **CUT)
    model, text = small_hooked("t5"), eager.text(*(side.input_ids for side in words))
    linked = read_linked(text, words, LINKS, 1)
    frame = alignment_frame(model, linked, 4096).query("layer == 1 and head == 2")
    pairs = (map(torch.tensor, ([text.src[n]], [text.tgt_in[n]])) for n in (1, 3, 5))
    asked = {"output_attentions": True}
    found = [
        eager.model(s, decoder_input_ids=t, **asked).cross_attentions[1][0, 2] for s, t in pairs
    ]
    for row in frame.itertuples():
        by_pair = (counts(w, n, row.step, row.words) for w, n in zip(found, (1, 3, 5), strict=True))
        sure, possible, links, wanted = map(sum, zip(*by_pair, strict=True))
        expected = [1 - (sure + possible) / (links + wanted), possible / links, sure / wanted]
        assert [row.aer, row.precision, row.recall] == pytest.approx(expected)
    assert len(frame) == 4 and frame["aer"].nunique() > 1
    with pytest.raises(UserError, match="expected the sources and targets of this text"):
        read_linked(small_text(model), words, LINKS, 0)
