"""Pieces of running text by a model that someone else has learnt.

It is one of SentencePiece, or a tokenizer.json of the library tokenizers.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from headcount.base.errors import UserError, optional_package
from headcount.base.folders import SIDES
from headcount.data.spelling import Spell
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import protect, restore

UNIT = "sentencepiece"
"""The `unit` that segmentation.json tells of text that was cut by a SentencePiece model."""
TOKENIZER_UNIT = "tokenizer"
"""… and of text that was cut by a tokenizer.json."""
MARKS = "marks"
"""Where segmentation.json tells the `Marks` of each side."""


_UNKNOWN = "<unk>"  # no vocabulary has it among its pieces of text
_SPACES = ("▁", "Ġ")  # what stands for a space, in a SentencePiece model and in one of bytes

Placed = tuple[str, int]
"""A piece, and where in its line it begins, in characters."""


@dataclass(frozen=True)
class Marks:
    """What a model wants around the pieces of every sentence of a side, the end left out."""

    before: Sequence[str] = ()
    after: Sequence[str] = ()
    special: Sequence[str] = ()
    """Names of pieces that are no text, all marks among them; no translation shows them."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Added words, which are cut whole, and for each the pattern that finds it in a line."""

    def around(self, placed: list[Placed], end: int) -> list[Placed]:
        """Pieces of a sentence with its marks, at its edges 0 and `end`; no sentence has none."""
        before, after = [(each, 0) for each in self.before], [(each, end) for each in self.after]
        return [*before, *placed, *after] if placed else []

    def prefix(self, words: Vocabulary) -> list[int]:
        """Ids that every sentence begins with."""
        return words.ids(map(protect, self.before))


def read_marks(about: dict[str, Any], side: int) -> Marks:
    """Those of a side, from what segmentation.json says; none of subwords of words."""
    if about["unit"] not in (UNIT, TOKENIZER_UNIT):
        return Marks()
    return Marks(**about[MARKS][SIDES[side]])


class RunningPieces(ABC):
    """One side of a pair, as `Segmenter` is: from a line of text to subword ids and back."""

    def __init__(self, language: str, words: Vocabulary, marks: Marks, spell: Spell = str):
        """`words`: the pieces that the model knows; `spell`: writes lines as its text is here."""
        self.language = language
        self.spell = spell
        self.vocabulary = words
        self._marks = marks
        self._special = frozenset(map(protect, marks.special))
        self._apart = self._special.union(map(protect, marks.words))

    @property
    def prefix(self) -> list[int]:
        """Ids that every sentence begins with, such as the code of its language."""
        return self._marks.prefix(self.vocabulary)

    @property
    def marked(self) -> bool:
        """Whether sentences have pieces that stand for no text, beside their end."""
        return bool(self._marks.before or self._marks.after)

    def pieces(self, line: str) -> list[str]:
        """Pieces of a cleaned line with its marks, those outside the vocabulary included.

        Names of special pieces in the line are text like any other.
        """
        return [piece for piece, _ in self.placed(line)]

    def placed(self, line: str) -> list[Placed]:
        """The same pieces, each with the position in the line where its characters begin.

        The line is the one that `spell` makes. A piece that stands for a part of one character
        alone has that character's.
        """
        line = self.spell(line)
        placed = self._marks.around(self._cut(line), len(line))
        return [(protect(piece), position) for piece, position in placed]

    def begins(self, pieces: Sequence[str]) -> list[bool]:
        """Whether each piece begins a word, as those of text do with the sign of a space.

        Each special piece and each added word stands for itself.
        """
        apart = [piece in self._apart for piece in pieces]
        before = [True, *apart[:-1]][: len(pieces)]
        spaced = [restore(piece).startswith(_SPACES) for piece in pieces]
        return [any(each) for each in zip(apart, before, spaced, strict=True)]

    def word_count(self, pieces: Sequence[str]) -> int:
        """How many words of text pieces have; special ones are none."""
        both = zip(self.begins(pieces), pieces, strict=True)
        return sum(begins and piece not in self._special for begins, piece in both)

    def word(self, pieces: Sequence[str]) -> str:
        """The word of these pieces; a special one by its name."""
        if pieces[0] in self._special:
            return restore(pieces[0])
        return self._join([restore(piece) for piece in pieces]).strip()

    def encode(self, line: str) -> list[int]:
        """Ids of a cleaned line, without start or end; unknown pieces become UNK."""
        return self.vocabulary.ids(self.pieces(line))

    def cut_off(self, ids: list[int], longest: int) -> list[int]:
        """Ids of a line, no more than `longest`; marks behind it are kept."""
        if len(ids) <= longest:
            return ids
        after = self.vocabulary.ids(map(protect, self._marks.after))
        return [*ids[: max(0, longest - len(after))], *after][:longest]

    def decode(self, ids: Iterable[int]) -> str:
        """The line of ids without padding, start or end; special pieces are left out.

        It is spelt as the text is that it is scored on: the model may have learnt from other text.
        """
        pieces = (p for p in self.vocabulary.pieces(ids) if p not in self._special)
        return self.spell(" ".join(self._join([restore(piece) for piece in pieces]).split()))

    @abstractmethod
    def _cut(self, line: str) -> list[Placed]:
        """Pieces of a line, as the model names them, and where each begins."""

    @abstractmethod
    def _join(self, pieces: list[str]) -> str:
        """The line of such pieces."""


class SentencePieces(RunningPieces):
    """Pieces by a SentencePiece model."""

    def __init__(
        self, language: str, model: bytes, words: Vocabulary, marks: Marks, spell: Spell = str
    ):
        """`model`: the bytes of its file. Raises as `load_sentencepiece` does."""
        super().__init__(language, words, marks, spell)
        self._model = load_sentencepiece(model)
        self._added = sorted(marks.words, key=len, reverse=True)  # where several begin, the longest
        patterns = [f"({marks.words[name]})" for name in self._added]
        self._finder = re.compile("|".join(patterns) or "(?!)")

    def _cut(self, line: str) -> list[Placed]:
        found: list[Placed] = []
        end = 0
        for match in self._finder.finditer(line):
            found += self._cut_between(line, end, match.start())
            found.append((self._added[(match.lastindex or 0) - 1], match.start()))
            end = match.end()
        return [*found, *self._cut_between(line, end, len(line))]

    def _cut_between(self, line: str, start: int, end: int) -> list[Placed]:
        """Pieces of a part of a line, which is cut as if it stood alone."""
        found = self._model.encode(line[start:end], return_type="offset_mapping")
        starts = [start + offset for offset, _ in found["offsets"]]
        return list(zip(found["pieces"], starts, strict=True))

    def _join(self, pieces: list[str]) -> str:
        return self._model.decode(pieces)


class TokenizerPieces(RunningPieces):
    """Pieces by a tokenizer.json."""

    def __init__(
        self, language: str, model: bytes, words: Vocabulary, marks: Marks, spell: Spell = str
    ):
        """`model`: the bytes of the JSON. Raises as `load_tokenizer` does."""
        super().__init__(language, words, marks, spell)
        self._model = load_tokenizer(model)
        self._added = {self._model.token_to_id(name): name for name in marks.words}

    def _cut(self, line: str) -> list[Placed]:
        found = self._model.encode(line, add_special_tokens=False)
        names = set(self._added.values())
        # A token has the spaces that its word takes along; its id has its name. One that is not
        # known has its text, which a word that is added may have for a name.
        tokens = (
            self._added.get(number) or (_UNKNOWN if token in names else token)
            for number, token in zip(found.ids, found.tokens, strict=True)
        )
        starts = [start for start, _ in found.offsets]
        return list(zip(tokens, starts, strict=True))

    def _join(self, pieces: list[str]) -> str:
        return self._model.decoder.decode(pieces)


def load_sentencepiece(model: bytes) -> Any:
    """The processor of a model file.

    Raises UserError if the bytes are no such model, EnvironmentFault without the package.
    """
    package = _extra("sentencepiece")
    try:
        return package.SentencePieceProcessor(model_proto=model)
    except RuntimeError as fault:
        raise UserError(f"expected a SentencePiece model, found {len(model)} bytes") from fault


@lru_cache(maxsize=1)  # both sides have the same; one of 250,000 pieces takes two seconds
def load_tokenizer(model: bytes) -> Any:
    """The tokenizer of a tokenizer.json.

    Raises UserError if the bytes are none, EnvironmentFault without the package.
    """
    package = _extra("tokenizers")
    try:
        return package.Tokenizer.from_str(model.decode("utf-8"))
    except Exception as fault:  # the library has no narrower one
        raise UserError(f"expected a tokenizer.json, found {len(model)} bytes: {fault}") from fault


def make_pieces(
    unit: str,
    language: str,
    model: bytes,
    words: Vocabulary,
    marks: Marks,
    spell: Spell = str,
) -> RunningPieces:
    """What cuts running text by a model of this `unit`."""
    kind = SentencePieces if unit == UNIT else TokenizerPieces
    return kind(language, model, words, marks, spell)


def _extra(package: str) -> Any:
    remedy = "run: pip install -e '.[pretrained]'"
    return optional_package(package, "pieces of a pretrained model", remedy)
