"""Which training pairs are kept: the filters in their order, and how much each may leave out."""

import math
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from headcount.base.errors import UserError
from headcount.base.settings.data import TextSettings
from headcount.data.lines import clean_lines
from headcount.data.words import UNSPACED

LONGEST_WORD = 1000
"""Characters; a training pair with a longer word is left out."""
CHARACTERS_A_WORD = 2
"""Of a script without spaces, that count as one word. Chinese and Japanese have about as many for
an English word, Thai about twice as many: none comes near `max_ratio` by its script alone."""

_RATIO_FROM = 5  # words: short sentences may differ by any ratio

_UNSPACED = re.compile(f"[{UNSPACED}]")


def measure(line: str) -> tuple[int, int]:
    """How many words a cleaned line has at its spaces, and characters the longest of them.

    Of a script that is written without spaces, characters stand for words, and have no part in the
    longest one.
    """
    characters = 0
    if not line.isascii():
        line, characters = _UNSPACED.subn("", line)
    words = line.split()
    unspaced = math.ceil(characters / CHARACTERS_A_WORD)
    return len(words) + unspaced, max(map(len, words), default=0)


class _Pair(NamedTuple):
    """A pair as the filters see it."""

    src: str
    tgt: str
    fewer: int  # words of its shorter side
    more: int  # words of its longer side
    longest: int  # characters of its longest word


class PairFilter:
    """Which pairs are kept, and how many each filter found and dropped.

    A pair is dropped by the first filter that applies and is active; later ones do not see it.
    Filters in this order: `empty` (a side without words), `max_words`, `max_ratio` (only where
    the longer side has more than five words), `long_word`, `duplicates` (a later copy of a
    pair), `overlap` (the source line is held out). The last two drop pairs only if the settings
    say so; when the filter as a whole is not active, all of them only count.
    """

    def __init__(self, settings: TextSettings, held_out: Sequence[Path], active: bool):
        self._settings = settings
        self._seen: set[bytes] = set()
        self._held_out = {line for path in held_out for line in clean_lines(path) if line}
        self._rules: dict[str, Callable[[_Pair], bool]] = {
            "empty": lambda pair: not (pair.src and pair.tgt),
            "max_words": lambda pair: pair.more > settings.max_words,
            "max_ratio": lambda pair: pair.more > max(_RATIO_FROM, settings.max_ratio * pair.fewer),
            "long_word": lambda pair: pair.longest > LONGEST_WORD,
            "duplicates": self._seen_before,
            "overlap": lambda pair: pair.src in self._held_out,
        }
        self._asked_for = {"duplicates": settings.drop_duplicates, "overlap": settings.drop_overlap}
        self._active = {n for n in self._rules if active and self._asked_for.get(n, True)}
        if "overlap" in self._active and not held_out:
            raise UserError("drop_overlap: expected held-out source files (--held-out), found none")
        self.found = dict.fromkeys(self._rules, 0)
        self.dropped = dict.fromkeys(self._rules, 0)
        self.with_words = 0
        """Kept pairs with words on both sides."""
        self.equal = 0
        """Pairs whose sides are the same, which teach a model to copy."""
        self._pairs = 0
        self._first: dict[str, int] = {}  # number of the first pair that each dropped

    def keeps(self, src: str, tgt: str) -> bool:
        """True if the pair stays; counts it either way."""
        self._pairs += 1
        self.equal += bool(src) and src == tgt
        words, longest = zip(measure(src), measure(tgt), strict=True)
        pair = _Pair(src, tgt, *sorted(words), max(longest))
        for name, applies in self._rules.items():
            if applies(pair):
                self.found[name] += 1
                if name in self._active:
                    self.dropped[name] += 1
                    self._first.setdefault(name, self._pairs)
                    return False
        self.with_words += bool(src and tgt)
        return True

    def check_losses(self, files: str) -> None:
        """Raise UserError if a filter dropped a larger share of the pairs than `max_dropped`.

        Not for `duplicates` and `overlap`: whoever switches these on means all that they drop.
        `files`: where the pairs came from, for the message.
        """
        most = self._settings.max_dropped
        for name, dropped in self.dropped.items():
            if name in self._asked_for or dropped / max(1, self._pairs) <= most:
                continue  # a quotient, so that the share that is advised is enough
            share = math.ceil(100 * dropped / self._pairs) / 100
            raised = f" and text.{name}" if name in TextSettings.model_fields else ""
            raise UserError(
                f"{files}: the filter {name} would leave out {dropped} of {self._pairs} training "
                f"pairs, the first of them pair {self._first[name]} of those read; "
                f"text.max_dropped allows a share of {most}. Check these pairs{raised}; if the "
                f"loss is meant, set text.max_dropped to {share}."
            )

    def _seen_before(self, pair: _Pair) -> bool:
        """Sixteen bytes stand for a pair, so that millions of pairs fit in memory."""
        mark = blake2b(f"{pair.src}\n{pair.tgt}".encode(), digest_size=16).digest()
        known = mark in self._seen
        self._seen.add(mark)
        return known
