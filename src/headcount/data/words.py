"""Words of a line and back: Moses's rules by language, and an escaping that loses nothing."""

import re

from headcount.data.vocabulary import Vocabulary

SEPARATOR = "@@"
"""Ends every piece that the next piece continues."""

_SPECIALS = tuple(Vocabulary([]).pieces(range(4)))
_UNSAFE = re.compile(r"[\\\s]")
_ESCAPED = re.compile(r"\\([0-9a-f]{1,6});")


class Tokeniser:
    """Splits lines of one language into words, and joins words into a line.

    Text that is tokenised already is split and joined at spaces only. A language that Moses
    has no rules for gets its general ones. Nothing is escaped, so `&amp;` stays what it is.
    """

    def __init__(self, language: str, pretokenised: bool):
        self._moses = None
        if not pretokenised:
            # Imported here because it takes a quarter of a second that not every text needs.
            import sacremoses

            self._moses = sacremoses.MosesTokenizer(language)
            self._undo = sacremoses.MosesDetokenizer(language)

    def split(self, line: str) -> list[str]:
        """Words of a cleaned line."""
        return self._moses.tokenize(line, escape=False) if self._moses else line.split()

    def join(self, words: list[str]) -> str:
        """A line as people write it. Its white space is single spaces, whatever the words hold."""
        line = self._undo.detokenize(words, unescape=False) if self._moses else " ".join(words)
        return " ".join(line.split())


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
