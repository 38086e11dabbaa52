"""Word links of pairs that a tokeniser of Hugging Face's library cut."""

from collections.abc import Sequence
from typing import Any

from headcount.base.errors import UserError
from headcount.data.batches import ParallelText
from headcount.heads.head_measures import OUTSIDE
from headcount.heads.linked_text import LinkedText, Words
from headcount.library.linking import Cut, join_links


def read_linked(
    text: ParallelText, words: Sequence[Any], links: Sequence[str], skip: int
) -> LinkedText:
    """Return pairs with links. `words`: encodings of sources, from word `skip`, and of targets."""
    if [side["input_ids"] for side in words if side.is_fast] != [text.src, text.tgt]:
        raise UserError(
            "words: expected the sources and targets of this text, as a fast tokeniser returns "
            "them with is_split_into_words=True, found others"
        )
    numbers = [_numbers(side, first) for side, first in zip(words, (skip, 0), strict=True)]
    return LinkedText(join_links(*map(_cut, words, numbers), links), text, numbers)


def _numbers(side: Any, skip: int) -> Words:
    rows = map(side.word_ids, range(len(side["input_ids"])))
    return [[OUTSIDE if n is None or n < skip else n - skip for n in row] for row in rows]


def _cut(side: Any, numbers: Words) -> Cut:
    pieces: Cut = [[[] for _ in range(max(row, default=OUTSIDE) + 1)] for row in numbers]
    for sentence, row in enumerate(numbers):
        for number, piece in zip(row, side.tokens(sentence), strict=True):
            if number != OUTSIDE:
                pieces[sentence][number].append(piece)
    return pieces
