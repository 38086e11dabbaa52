"""Pieces of running text by a model of SentencePiece or a tokenizer.json of the hub."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from headcount.base.errors import install, optional_package, refusing
from headcount.base.folders import SIDES
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import AnySegmenter, Marks, Normalise, is_punctuation, protect, restore

UNIT = "sentencepiece"
"""`unit` in segmentation.json of text that was cut by a SentencePiece model."""
TOKENIZER_UNIT = "tokenizer"
"""`unit` in segmentation.json of text that was cut by a tokenizer.json."""
MARKS = "marks"
"""Key of segmentation.json: the `Marks` of each side."""

_UNKNOWN = "<unk>"  # no vocabulary has it among its pieces of text
_SPACES = ("▁", "Ġ")  # signs of a space, in a SentencePiece model and in one of bytes
_REMEDY = install("pretrained")

Placed = tuple[str, int]
"""A piece, and the position in its line where it begins, in characters."""


def read_marks(about: dict[str, Any], side: int) -> Marks:
    """Return the marks of a side from segmentation.json, none where it has no marks."""
    return Marks(**about.get(MARKS, {}).get(SIDES[side], {}))


class RunningPieces(AnySegmenter):
    """One side of a pair, cut by a model of running text."""

    def __init__(
        self,
        language: str,
        words: Vocabulary,
        marks: Marks,
        normalise: Normalise,
        cut: Callable[[str], list[Placed]],
        join: Callable[[list[str]], str],
    ):
        """`cut` and `join` have the model's own names of pieces."""
        super().__init__(language, words, normalise, marks)
        self._cut, self._join = cut, join
        self._apart = self.special.union(map(protect, marks.words))

    def text_pieces(self, line: str) -> list[str]:
        """Return the pieces of a cleaned line without its marks, known to the model or not."""
        return [piece for piece, _ in self.placed(line)]

    def placed(self, line: str) -> list[Placed]:
        """Return the pieces of text, with positions in the normalised line where they begin."""
        return [(protect(piece), position) for piece, position in self._cut(self.normalise(line))]

    def begins(self, pieces: Sequence[str]) -> list[bool]:
        """Return for each piece True if it begins a word. Special pieces and added words do."""
        apart = [piece in self._apart for piece in pieces]
        before = [True, *apart[:-1]][: len(pieces)]
        spaced = [restore(piece).startswith(_SPACES) for piece in pieces]
        return [any(reasons) for reasons in zip(apart, before, spaced, strict=True)]

    def word(self, pieces: Sequence[str]) -> str:
        """Return the word of these pieces, or the name of a special piece."""
        if pieces[0] in self.special:
            return restore(pieces[0])
        return self._join([restore(piece) for piece in pieces]).strip()

    def punctuation(self, pieces: Sequence[str]) -> list[bool]:
        """Return for each piece True if it has no letter. Here words include their punctuation."""
        return [is_punctuation(self.word([piece])) for piece in pieces]

    def cut_off(self, ids: list[int], longest: int) -> list[int]:
        """Return at most `longest` ids of a line, among them the marks at its end."""
        if len(ids) <= longest:
            return ids
        after = self.vocabulary.ids(self.marks[1])
        return [*ids[: max(0, longest - len(after))], *after][:longest]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the normalised line of ids without padding, start, end and special pieces."""
        pieces = (p for p in self.vocabulary.pieces(ids) if p not in self.special)
        line = self._join([restore(piece) for piece in pieces])
        return self.normalise(" ".join(line.split()))


def make_pieces(
    unit: str,
    language: str,
    model: bytes,
    words: Vocabulary,
    marks: Marks,
    normalise: Normalise = str,
) -> RunningPieces:
    """Return the cutter of running text by the content of a model's file, of this `unit`."""
    fault = f"expected a whole {'SentencePiece model' if unit == UNIT else 'tokenizer.json'}"
    with refusing(f"{fault}, found {len(model)} bytes"):
        cut, join = (_sentencepiece if unit == UNIT else _tokenizer)(model, marks)

    def safely_cut(line: str) -> list[Placed]:
        with refusing(f"{fault} that can cut {line[:50]!r}"):
            return cut(line)

    def safely_join(pieces: list[str]) -> str:
        with refusing(f"{fault} that can join pieces"):
            return join(pieces)

    return RunningPieces(language, words, marks, normalise, safely_cut, safely_join)


def _sentencepiece(model: bytes, marks: Marks) -> tuple[Callable, Callable]:
    """Return the functions that cut and join by a SentencePiece model."""
    package = optional_package("sentencepiece", "pieces of a pretrained model", _REMEDY)
    processor = package.SentencePieceProcessor(model_proto=model)
    added = sorted(marks.words, key=len, reverse=True)  # where several begin, the longest
    finder = re.compile("|".join(f"({marks.words[name]})" for name in added) or "(?!)")

    def between(line: str, start: int, end: int) -> list[Placed]:
        """Return the pieces of a part of a line, which is cut as if it stood alone."""
        part = processor.encode(line[start:end], return_type="offset_mapping")
        return [(p, start + o) for p, (o, _) in zip(part["pieces"], part["offsets"], strict=True)]

    def cut(line: str) -> list[Placed]:
        placed: list[Placed] = []
        end = 0
        for match in finder.finditer(line):
            placed += between(line, end, match.start())
            placed.append((added[(match.lastindex or 0) - 1], match.start()))
            end = match.end()
        return [*placed, *between(line, end, len(line))]

    return cut, processor.decode


def _tokenizer(model: bytes, marks: Marks) -> tuple[Callable, Callable]:
    """Return the functions that cut and join by a tokenizer.json."""
    tokenizer = load_tokenizer(model)
    added = {tokenizer.token_to_id(name): name for name in marks.words}
    names = set(added.values())

    def cut(line: str) -> list[Placed]:
        whole = tokenizer.encode(line, add_special_tokens=False)
        # The token of an added word includes the spaces beside it; its id has its name. An unknown
        # token has its text, which may be the name of an added word.
        tokens = (
            added.get(number) or (_UNKNOWN if token in names else token)
            for number, token in zip(whole.ids, whole.tokens, strict=True)
        )
        return [(token, start) for token, (start, _) in zip(tokens, whole.offsets, strict=True)]

    return cut, lambda pieces: tokenizer.decoder.decode(pieces)


@lru_cache(maxsize=1)  # both sides have the same; one of 250,000 pieces takes two seconds
def load_tokenizer(model: bytes) -> Any:
    """Return the tokenizer of a tokenizer.json."""
    package = optional_package("tokenizers", "pieces of a pretrained model", _REMEDY)
    with refusing(f"expected a whole tokenizer.json, found {len(model)} bytes"):
        return package.Tokenizer.from_str(model.decode("utf-8"))
