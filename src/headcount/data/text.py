"""Sentence pairs: cleaned, filtered for training, counted, written line by line."""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import whole_file, write_json
from headcount.base.folders import SIDES
from headcount.base.settings.data import TextSettings
from headcount.base.settings.sources import Draw
from headcount.data.lines import FoundText, clean_lines
from headcount.data.pairs import RawSplit
from headcount.data.words import UNSPACED, normaliser

# Characters of a script without spaces that count as one word. An English word has about two in
# Chinese and Japanese and four in Thai, so no script alone comes near `max_ratio`.
CHARACTERS_A_WORD = 2
LONGEST_WORD = 1000  # characters
_RATIO_FROM = 5  # words: short sentences may differ by any ratio
_UNSPACED = re.compile(f"[{UNSPACED}]")


def measure(line: str) -> tuple[int, int]:
    """Return the number of words of a cleaned line at its spaces, and the longest in characters."""
    characters = 0
    if not line.isascii():
        line, characters = _UNSPACED.subn("", line)
    words = line.split()
    unspaced = math.ceil(characters / CHARACTERS_A_WORD)
    return len(words) + unspaced, max(map(len, words), default=0)


class _Pair(NamedTuple):
    src: str
    tgt: str
    fewer: int  # words of its shorter side
    more: int  # words of its longer side
    longest: int  # characters of its longest word


class PairFilter:
    """Filters of pairs, with the number of pairs that each found and dropped.

    The first filter that applies and is active drops a pair, and later ones do not see it.
    `duplicates` and `overlap` drop only on request. Without `active` all only count.
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
        self._requested = {"duplicates": settings.drop_duplicates, "overlap": settings.drop_overlap}
        self._active = {n for n in self._rules if active and self._requested.get(n, True)}
        if "overlap" in self._active and not held_out:
            raise UserError("drop_overlap: expected held-out source files (--held-out), found none")
        self.found = dict.fromkeys(self._rules, 0)
        self.dropped = dict.fromkeys(self._rules, 0)
        self._with_words = 0  # pairs that stay, with words on both sides
        self.equal = 0  # pairs with equal sides, which teach a model to copy
        self.pairs = 0
        self._first: dict[str, int] = {}  # number of the first pair that each dropped

    def keeps(self, src: str, tgt: str) -> bool:
        """Return True if the pair stays, and count it."""
        self.pairs += 1
        self.equal += bool(src) and src == tgt
        words, longest = zip(measure(src), measure(tgt), strict=True)
        pair = _Pair(src, tgt, *sorted(words), max(longest))
        for name, applies in self._rules.items():
            if applies(pair):
                self.found[name] += 1
                if name in self._active:
                    self.dropped[name] += 1
                    self._first.setdefault(name, self.pairs)
                    return False
        self._with_words += bool(src and tgt)
        return True

    def check_losses(self, files: str) -> None:
        """Raise UserError if no pair remains, or a filter dropped a larger share than allowed."""
        if not self._with_words:
            rest = f"no pair with words on both sides remains of {self.pairs}"
            raise UserError(f"{files}: {rest}; dropped: {self.dropped}")
        most = self._settings.max_dropped
        for name, dropped in self.dropped.items():
            # A quotient, so that the share in the message is enough.
            if name not in self._requested and dropped / self.pairs > most:
                share = math.ceil(100 * dropped / self.pairs) / 100
                raise UserError(
                    f"{files}: the filter {name} would leave out {dropped} of {self.pairs} "
                    f"training pairs, the first of them pair {self._first[name]}; check them, or "
                    f"raise text.max_dropped from {most} to {share}."
                )

    def _seen_before(self, pair: _Pair) -> bool:
        """Return True for a copy. A digest of 16 bytes stands for a pair."""
        before = len(self._seen)
        self._seen.add(blake2b(f"{pair.src}\n{pair.tgt}".encode(), digest_size=16).digest())
        return len(self._seen) == before


_CONTROLS = re.compile("[\x01-\x1f\x7f-\x9f\u2028\u2029]")
_INVISIBLE = re.compile("[\u200b\u2060\xad]")
_SPACED = re.compile(r" [.,](?: |$)")


def write_split(
    manifest: Path,
    languages: tuple[str, str],
    split: str,
    settings: TextSettings,
    held_out: Sequence[Path],
    out: tuple[Path, Path],
    counts: Path,
    draw: Draw | None = None,
) -> None:
    """Write one split of a pair: two text files, line i of one translating line i of the other.

    `draw` selects pairs before any filter. Several references stand in one line, separated by tabs,
    and filters read the first. Filters drop pairs of `train` only and count elsewhere.
    """
    raw = RawSplit(manifest, split, languages, draw)
    odd = {side: {"invisible": 0, "spaced": 0} for side in SIDES}
    judge, normalise = PairFilter(settings, held_out, split == "train"), normaliser(settings)
    with ExitStack() as stack:
        parts = [stack.enter_context(whole_file(path)) for path in out]
        src, tgt = (
            stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts
        )
        for row in raw.rows():
            source, *others = (normalise(clean(line)) for line in row)
            for line, counted in zip((source, others[0]), odd.values(), strict=True):
                counted["invisible"] += len(_INVISIBLE.findall(line))
                counted["spaced"] += _SPACED.search(line) is not None
            if judge.keeps(source, others[0]):
                src.write(f"{source}\n")
                tgt.write("\t".join(others) + "\n")
        judge.check_losses(raw.shown)
    facts = {"split": split, "src_lang": languages[0], "tgt_lang": languages[1]}
    facts |= {"references": raw.references, "left_out": raw.left_out}
    facts |= {"pairs_read": judge.pairs, "pairs_kept": judge.pairs - sum(judge.dropped.values())}
    facts |= {"found": judge.found, "dropped": judge.dropped, "equal": judge.equal}
    write_json(counts, facts | odd)


def clean(line: str) -> str:
    """Return the line with single spaces between its words.

    White space and control characters separate words. A line of invisible characters is empty.
    """
    line = " ".join(_CONTROLS.sub(" ", line.replace("\ufeff", "")).split())
    return line if _INVISIBLE.sub("", line).strip() else ""


def read_clean(path: Path) -> list[str]:
    """Return the cleaned lines of any text, by the line rule of raw text."""
    return list(map(clean, FoundText(path).lines()))
