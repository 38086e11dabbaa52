"""Words and letters of a line: Unicode form and lower case, Moses's rules, a safe escaping."""

import logging
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import regex

from headcount.base.errors import EnvironmentFault, install
from headcount.base.settings.data import LetterSettings, SpellingSettings, two_letters
from headcount.data.vocabulary import SPECIALS, Vocabulary

SPELLING = "spelling"
"""Key of segmentation.json: the `SpellingSettings` that are not the defaults."""

Normalise = Callable[[str], str]


def normaliser(settings: SpellingSettings) -> Normalise:
    """Return a function that normalises a line: Unicode form, then lower case. It is idempotent."""
    form = settings.normal_form

    def normal(line: str) -> str:
        return line if form == "none" else unicodedata.normalize(form, line)

    def normalise(line: str) -> str:
        line = normal(line)
        return normal(line.lower()) if settings.lowercase else line  # small letters may compose

    return normalise


def spelling_facts(settings: LetterSettings) -> dict[str, Any]:
    """Return the entry of segmentation.json for settings: empty for the defaults."""
    changed = settings.model_dump(exclude_defaults=True)
    return {SPELLING: changed} if changed else {}


def read_normaliser(about: dict[str, Any], default: SpellingSettings) -> Normalise:
    """Return the normaliser that segmentation.json records, by default that of `default`.

    Raises ValueError for an entry that is no such setting.
    """
    changed = about.get(SPELLING, {})
    if not isinstance(changed, dict):
        raise ValueError(f"{SPELLING}: expected settings by name, found {changed!r}")
    return normaliser(SpellingSettings(**default.model_dump() | changed))


SEPARATOR = "@@"
"""Ends every piece that the next piece continues."""

# Thai, Lao, Tibetan, Burmese; Khmer; Chinese and Japanese with their punctuation, wide forms and
# rare characters. Korean has spaces. The script of a character decides, not the spaces of its line:
# `Yes` has none, Thai has them between phrases, Japanese around foreign words.
UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\uff01-\uff9f"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Characters of scripts without spaces, as a class of a regular expression."""
_RUN = regex.compile(f"([{UNSPACED}]+)")
_CHARACTER = regex.compile(rf"[{UNSPACED}]\p{{M}}*")  # with its vowel signs and tones
_INNER_SPACE = regex.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")
_PUNCTUATION = regex.compile(r"(?:(?!\uFFFD)[\p{P}\p{S}])*")  # the sign of a broken byte is none

# Languages with faulty rules in sacremoses, joined by general ones. Czech's would append a number
# to the word before it in every line that ends in a number and a stop.
_JOINED_AS = {"cs": ""}

_UNSAFE = re.compile(r"[\\\s]")
_ESCAPED = re.compile(r"\\([0-9a-f]{1,6});")


class Tokeniser:
    """Splits lines of one language into words by Moses's rules, and joins words into a line.

    Tokenised text is split and joined at spaces only. Nothing is escaped: `&amp;` stays.
    """

    def __init__(self, language: str, pretokenised: bool, unsegmented_scripts: str):
        """`unsegmented_scripts`: the key of `BpeSettings`.

        Raises EnvironmentFault where jieba is needed and missing.
        """
        self.language = language
        self._rules, self._jieba = not pretokenised, None
        self._unspaced = unsegmented_scripts != "none" and not pretokenised
        if uses_jieba(language, pretokenised, unsegmented_scripts):
            import jieba  # here, because few languages need it

            jieba.setLogLevel(logging.WARNING)
            self._jieba = jieba

    @cached_property
    def _moses(self) -> tuple[Any, Any]:
        """Tokeniser and detokeniser by Moses's rules."""
        import sacremoses  # takes a quarter of a second that not every job needs

        code = two_letters(self.language)
        undo = sacremoses.MosesDetokenizer(_JOINED_AS.get(code, code))
        return sacremoses.MosesTokenizer(code), undo

    def split(self, line: str) -> list[str]:
        """Return the words of a cleaned line."""
        if not self._rules:
            return line.split()
        if not self._unspaced or line.isascii():
            return self._moses[0].tokenize(line, escape=False)
        words: list[str] = []
        for place, part in enumerate(_RUN.split(line)):
            if place % 2 == 0:  # between runs of unspaced characters
                words += self._moses[0].tokenize(part, escape=False)
            else:
                words += self._jieba.lcut(part) if self._jieba else _CHARACTER.findall(part)
        return words

    def join(self, words: list[str]) -> str:
        """Return the line of words as people write it, with single spaces."""
        line = self._moses[1].detokenize(words, unescape=False) if self._rules else " ".join(words)
        line = " ".join(line.split())
        return _INNER_SPACE.sub("", line) if self._unspaced else line


@dataclass(frozen=True)
class Marks:
    """Pieces that a model needs around every sentence of a side, without the end."""

    before: Sequence[str] = ()
    after: Sequence[str] = ()
    special: Sequence[str] = ()
    """Names of pieces that are not text, all marks among them. No translation shows them."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Added words, which are cut whole, each with the pattern that finds it in a line."""


_UNMARKED = Marks()
LANGUAGE = "<2"
"""Begins the name of a target language's mark, as in `<2de>`."""


class AnySegmenter:
    """One side of a pair: from a line of text to subword ids and back."""

    def __init__(
        self, language: str, words: Vocabulary, normalise: Normalise, marks: Marks = _UNMARKED
    ):
        """`words`: the pieces of the model. `normalise` writes lines as the training text.

        `marks`: pieces around every sentence. `prefix` is the ids that every sentence begins with,
        such as the code of its language, and `special` the pieces that are not text.
        """
        self.language, self.vocabulary, self.normalise = language, words, normalise
        self.marks = list(map(protect, marks.before)), list(map(protect, marks.after))
        self.prefix = words.ids(self.marks[0])
        self.special = frozenset(map(protect, marks.special))

    def pieces(self, line: str) -> list[str]:
        """Return the pieces of a cleaned line with its marks, known to the model or not."""
        before, after = self.marks
        text = self.text_pieces(line)
        return [*before, *text, *after] if text else []

    def word_count(self, pieces: Sequence[str]) -> int:
        """Return the number of words of text, without special pieces."""
        both = zip(self.begins(pieces), pieces, strict=True)
        return sum(begins and piece not in self.special for begins, piece in both)

    def words(self, pieces: Sequence[str]) -> list[tuple[str, int]]:
        """Return the words of pieces with their numbers of pieces.

        Ids do not show the word that an unknown piece belongs to.
        """
        places = [place for place, begins in enumerate(self.begins(pieces)) if begins]
        parts = [pieces[place:end] for place, end in pairwise([*places, len(pieces)])]
        return [(self.word(part), len(part)) for part in parts]

    def punctuation(self, pieces: Sequence[str]) -> list[bool]:
        """Return for each piece True if its whole word is punctuation or symbols."""
        words = self.words(pieces)
        return [mark for word, count in words for mark in [is_punctuation(word)] * count]

    def encode(self, line: str) -> list[int]:
        """Return the ids of a cleaned line, without start or end. Unknown pieces become UNK."""
        return self.vocabulary.ids(self.pieces(line))

    def cut_off(self, ids: list[int], longest: int) -> list[int]:
        """Return at most `longest` ids of a line."""
        return ids[:longest]


def is_punctuation(word: str) -> bool:
    """Return True for a word of punctuation and symbols alone (Unicode categories P and S)."""
    return _PUNCTUATION.fullmatch(word) is not None


def uses_jieba(language: str, pretokenised: bool, unsegmented_scripts: str) -> bool:
    """Return True if a `Tokeniser` of these calls jieba. Raises EnvironmentFault without jieba."""
    uses = unsegmented_scripts == "jieba" and two_letters(language) == "zh" and not pretokenised
    if uses and find_spec("jieba") is None:
        advice = f"{install('zh')}, or take characters"
        raise EnvironmentFault(f"bpe.unsegmented_scripts: jieba is not installed; {advice}")
    return uses


def protect(word: str) -> str:
    r"""Return a form of the word without white space, separator or special name at its end.

    Such characters become a backslash, their hexadecimal number and a semicolon (`\5c;`).
    """
    safe = _UNSAFE.sub(lambda match: f"\\{ord(match[0]):x};", word)
    if safe.endswith((SEPARATOR, *SPECIALS)):
        safe = f"{safe[:-1]}\\{ord(safe[-1]):x};"
    return safe


def restore(safe: str) -> str:
    """Return the word that `protect` made this form of. Other text stays as it is."""
    return _ESCAPED.sub(_unescape, safe)


def _unescape(match: re.Match[str]) -> str:
    """Return the character of a number. A number without one stays."""
    number = int(match[1], 16)
    return chr(number) if number < 0xD800 or 0xE000 <= number <= 0x10FFFF else match[0]
