"""Sentence pairs with word links, as a model reads them."""

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from headcount.data.batches import ParallelText
from headcount.data.word_links.links import LinkedPair
from headcount.data.words import AnySegmenter, is_punctuation, restore
from headcount.heads.head_measures import OUTSIDE, word_numbers

Words = list[list[int]]  # the word of every id of sentences


class LinkedText:
    """Sentence pairs with links, as ids for a model and as numbers of words for its weights."""

    def __init__(self, pairs: list[LinkedPair], ids: ParallelText, words: Sequence[Words]):
        """`words`: of sources and of targets, the word of every id, `OUTSIDE` for special ids."""
        self.pairs, self.ids, self._words = pairs, ids, words
        self._content = [
            [torch.tensor([_is_text(word) for word in words]) for words in (p.source, p.target)]
            for p in pairs
        ]

    def halves(self) -> "list[LinkedText]":
        """Return the pairs that rank heads, the first and every other one, and those for rates."""
        ids = [self.ids.part(range(first, len(self.pairs), 2)) for first in (0, 1)]
        words = [[side[first::2] for side in self._words] for first in (0, 1)]
        return [LinkedText(self.pairs[n::2], ids[n], words[n]) for n in (0, 1)]

    def numbers(self, indices: list[int], step: str) -> tuple[Tensor, Tensor]:
        """Return the words of queries [b, q] and keys [b, k]. Special keys follow all words."""
        keys, queries = (_padded([side[i] for i in indices]) for side in self._words)
        special = keys == OUTSIDE
        keys[special] = (special.cumsum(1) + self.longest(indices)[1] - 1)[special]
        if step == "input":
            queries = functional.pad(queries[:, :-1], (1, 0), value=OUTSIDE)
        return queries, keys

    def content(self, indices: list[int]) -> Tensor:
        """Return which source pieces [b, k] belong to words that are not only punctuation."""
        rows = [
            [word != OUTSIDE and bool(self._content[i][0][word]) for word in self._words[0][i]]
            for i in indices
        ]
        return _padded(rows, False)

    def gold(self, indices: list[int], words: str, shape: tuple[int, int]) -> list[Tensor]:
        """Return what takes part, and sure and possible links among it: [b, v, w], boolean."""
        gold = torch.zeros(3, len(indices), *shape, dtype=torch.bool)
        for row, index in enumerate(indices):
            pair, (source, target) = self.pairs[index], self._content[index]
            if words == "all":  # special keys, too, except for those of padding
                gold[0, row, : len(target)] = True
            else:
                gold[0, row, : len(target), : len(source)] = target[:, None] & source
            for place, links in ((1, pair.sure), (2, pair.possible)):
                at = torch.tensor(links, dtype=torch.long).reshape(-1, 2).T
                gold[place, row, at[1], at[0]] = True
        return [gold[0], gold[1] & gold[0], gold[2] & gold[0]]

    def whole(self, weights: Tensor, indices: list[int]) -> Tensor:
        """Return weights [b, h, v, w] with rows for all target words, also those without pieces."""
        return functional.pad(weights, (0, 0, 0, self.longest(indices)[0] - weights.shape[2]))

    def longest(self, indices: list[int]) -> tuple[int, int]:
        """Return the most words of a target, and of a source, in a batch."""
        pairs = [self.pairs[index] for index in indices]
        return max(len(pair.target) for pair in pairs), max(len(pair.source) for pair in pairs)

    def diagonal(self, indices: list[int], shape: tuple[int, int]) -> Tensor:
        """Return weights [b, 1, v, w] that are largest at the word in the same place."""
        weights = torch.zeros(len(indices), 1, *shape)
        for row, pair in enumerate(self.pairs[index] for index in indices):
            places = [(torch.arange(n) + 0.5) / n for n in map(len, (pair.target, pair.source))]
            apart = (places[0][:, None] - places[1]).abs()
            weights[row, 0, : len(apart), : apart.shape[1]] = 1 - apart
        return weights


def linked_text(pairs: list[LinkedPair], sides: tuple[AnySegmenter, AnySegmenter]) -> LinkedText:
    """Return pairs as our models read them, with marks around them and an end."""
    both = ([p.source for p in pairs], [p.target for p in pairs])
    ids, words = zip(*map(_read, sides, both), strict=True)
    return LinkedText(pairs, ParallelText(*ids), words)


def _read(side: AnySegmenter, texts: list[list[list[str]]]) -> tuple[list[list[int]], Words]:
    """Return the ids of texts, and the word of every id and of the end."""
    before, after = side.marks
    pieces = ([*before, *chain.from_iterable(words), *after] for words in texts)
    around = len(before), len(after) + 1
    words = [word_numbers(map(len, words), *around) for words in texts]
    return [side.vocabulary.ids(sentence) for sentence in pieces], words


def _is_text(word: list[str]) -> bool:
    """Return True unless the pieces of a word are only punctuation. A word may have no piece."""
    text = "".join(restore(piece).lstrip("▁Ġ") for piece in word)
    return not text or not is_punctuation(text)


def _padded(rows: Words, value: int = OUTSIDE) -> Tensor:
    return pad_sequence(list(map(torch.tensor, rows)), True, value)
