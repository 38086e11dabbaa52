"""Words of a line and back: Moses's rules by language, and an escaping that loses nothing."""

import logging
import re
from importlib.util import find_spec
from typing import Any

import regex

from headcount.base.errors import EnvironmentFault
from headcount.base.settings.text.languages import two_letters
from headcount.data.vocabulary import Vocabulary

SEPARATOR = "@@"
"""Ends every piece that the next piece continues."""

# Thai, Lao, Tibetan, Burmese; Khmer; Chinese and Japanese with their punctuation, wide forms and
# rare characters. Korean is written with spaces. The script of a character decides, not whether its
# line has a space: `Yes` has none, Thai has them between phrases, Japanese around foreign words.
UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\uff01-\uff9f"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Characters of scripts that are written without spaces, as a class of a regular expression."""
_RUN = regex.compile(f"([{UNSPACED}]+)")
_CHARACTER = regex.compile(rf"[{UNSPACED}]\p{{M}}*")  # with the vowels and tones that stand on it
_INNER_SPACE = regex.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")

_JOINED_AS = {"cs": ""}
"""Languages that sacremoses has faulty rules for, joined by general ones: Czech's would append a
number to the word before it in every line that ends in a number and a stop."""

_SPECIALS = tuple(Vocabulary([]).pieces(range(4)))
_UNSAFE = re.compile(r"[\\\s]")
_ESCAPED = re.compile(r"\\([0-9a-f]{1,6});")


class Tokeniser:
    """Splits lines of one language into words, and joins words into a line.

    Text that is tokenised already is split and joined at spaces only. A language that Moses
    has no rules for gets its general ones. Nothing is escaped, so `&amp;` stays what it is.
    """

    def __init__(self, language: str, pretokenised: bool, unspaced: str):
        """`unspaced`: how words of scripts without spaces are found, as in `BpeSettings`.

        Raises EnvironmentFault where jieba is needed and missing.
        """
        self.language = language
        self._moses = None
        self._jieba = _jieba() if uses_jieba(language, pretokenised, unspaced) else None
        self._unspaced = unspaced != "none" and not pretokenised
        if not pretokenised:
            # Imported here because it takes a quarter of a second that not every text needs.
            import sacremoses

            code = two_letters(language)
            self._moses = sacremoses.MosesTokenizer(code)
            self._undo = sacremoses.MosesDetokenizer(_JOINED_AS.get(code, code))

    def split(self, line: str) -> list[str]:
        """Words of a cleaned line."""
        if not self._moses:
            return line.split()
        if not self._unspaced or line.isascii():
            return self._moses.tokenize(line, escape=False)
        parts = enumerate(_RUN.split(line))  # every second one is a run
        return [word for place, part in parts for word in self._words(part, place % 2 == 1)]

    def join(self, words: list[str]) -> str:
        """A line as people write it. Its white space is single spaces, whatever the words hold."""
        line = self._undo.detokenize(words, unescape=False) if self._moses else " ".join(words)
        line = " ".join(line.split())
        return _INNER_SPACE.sub("", line) if self._unspaced else line

    def _words(self, part: str, unspaced: bool) -> list[str]:
        """Words of a part of a line, all or nothing of which is of a script without spaces."""
        if not unspaced:
            return self._moses.tokenize(part, escape=False)
        return self._jieba.lcut(part) if self._jieba else _CHARACTER.findall(part)


def uses_jieba(language: str, pretokenised: bool, unspaced: str) -> bool:
    """True if a `Tokeniser` of these calls jieba. Raises EnvironmentFault where it cannot."""
    uses = unspaced == "jieba" and two_letters(language) == "zh" and not pretokenised
    if uses and find_spec("jieba") is None:
        raise EnvironmentFault(
            "bpe.unspaced: jieba finds the words of Chinese and is not installed; pip install -e "
            "'.[zh]', or take characters"
        )
    return uses


def _jieba() -> Any:
    """The segmenter, without its messages about the dictionary that it loads."""
    import jieba  # here, because few languages have it

    jieba.setLogLevel(logging.WARNING)
    return jieba


def protect(word: str) -> str:
    r"""A form of the word that can be cut into pieces and told apart from their marks.

    It holds no white space and ends neither in the separator nor in the name of a special
    piece. Characters in the way become a backslash, their hexadecimal number and a semicolon:
    `\5c;` for a backslash.
    """
    safe = _UNSAFE.sub(lambda found: _escape(found[0]), word)
    if safe.endswith((SEPARATOR, *_SPECIALS)):
        safe = safe[:-1] + _escape(safe[-1])
    return safe


def restore(safe: str) -> str:
    """The word that `protect` made this form of. What is no such form stays as it is."""
    return _ESCAPED.sub(_unescape, safe)


def _escape(character: str) -> str:
    return f"\\{ord(character):x};"


def _unescape(found: re.Match[str]) -> str:
    """A model can spell any number; those that are no character are left alone."""
    number = int(found[1], 16)
    is_character = number < 0xD800 or 0xE000 <= number <= 0x10FFFF
    return chr(number) if is_character else found[0]
