"""Aligned sentence pairs: cleaned, filtered for training, counted, written line by line."""

import math
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import whole_file, write_json
from headcount.base.settings.data import TextSettings
from headcount.data.filters import PairFilter
from headcount.data.lines import LineTally, read_lines
from headcount.data.manifest import FoundText, find_text

_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_CONTROLS = re.compile(f"[\x01-\x08\x0e-\x1f\x7f-\x9f{_BREAKS}]")
_NUMBER = re.compile(r"\d+")

_Traits = tuple[int, tuple[str, ...]]  # what shows in a line that it translates another


def write_split(
    manifest: Path,
    languages: tuple[str, str],
    split: str,
    settings: TextSettings,
    held_out: Sequence[Path],
    out: tuple[Path, Path],
    counts: Path,
) -> None:
    """Write one split of a pair: two text files, line i of one translating line i of the other.

    The filters leave lines out of the split `train` only; elsewhere they count. `held_out` are
    source files already written, for the overlap. The counts are JSON: pairs read and kept;
    `found` and `dropped` by filter; what reading met on each side. Raises UserError, and writes
    nothing, if a raw file is faulty, the sides differ in length, nothing remains, or a filter drops
    more than the settings allow.
    """
    sides = [find_text(manifest, split, language) for language in languages]
    tallies = [LineTally(), LineTally()]
    files = ", ".join(side.shown for side in sides)
    judge = PairFilter(settings, held_out, active=split == "train")
    with ExitStack() as stack:
        parts = [stack.enter_context(whole_file(path)) for path in out]
        src, tgt = (
            stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts
        )
        for one, other in _clean_pairs(split, sides, tallies, settings.normal_form):
            if judge.keeps(one, other):
                src.write(f"{one}\n")
                tgt.write(f"{other}\n")
        if judge.with_words == 0:
            raise UserError(
                f"{files}: no {split} pair with words on both sides "
                f"remains of {tallies[0].lines}; dropped: {judge.dropped}. "
                "Check the files and the text settings."
            )
        judge.check_losses(files)
    found = {
        "split": split,
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "pairs_read": tallies[0].lines,
        "pairs_kept": tallies[0].lines - sum(judge.dropped.values()),
        "found": judge.found,
        "dropped": judge.dropped,
        "src": asdict(tallies[0]),
        "tgt": asdict(tallies[1]),
    }
    write_json(counts, found)


def clean(line: str, normal_form: str, tally: LineTally) -> str:
    """The line in its Unicode normal form, its words separated by single spaces.

    Every white space (U+00A0 and U+3000 too) and control character separates words. Those that
    some readers take for a line end, and other control characters, are counted in `tally`.
    """
    if normal_form != "none":
        line = unicodedata.normalize(normal_form, line)
    odd = _CONTROLS.findall(line)
    if odd:
        breaks = sum(character in _BREAKS for character in odd)
        tally.line_breaks += breaks
        tally.controls += len(odd) - breaks
        line = _CONTROLS.sub(" ", line)
    return " ".join(line.split())


def read_clean(path: Path, normal_form: str) -> list[str]:
    """Cleaned lines of a text by the line rule of raw text, so that it may be anyone's."""
    tally = LineTally()
    return [clean(line, normal_form, tally) for line in read_lines(path, None, tally)]


def parting_line(shorter: Iterable[str], longer: Iterable[str], surplus: int) -> int:
    """Most suspicious line, counted from 1, when `longer` has `surplus` lines too many.

    Up to the parting, line i translates line i; after it, line i + surplus. How badly two lines
    match is the difference of their lengths (absolute logarithm of the ratio) plus 1 if their
    numbers differ. The parting is where the sum of all mismatches is smallest; it is a guess.
    """
    later = map(_traits, longer)
    window = deque(islice(later, surplus))
    best, best_cost, cost = 1, 0.0, 0.0
    # The surplus makes the second iterable as long as the first.
    for line, (side, ahead) in enumerate(zip(map(_traits, shorter), later, strict=True), start=2):
        window.append(ahead)
        # What it costs to part after this line rather than before it.
        cost += _mismatch(side, window.popleft()) - _mismatch(side, ahead)
        if cost < best_cost:
            best, best_cost = line, cost
    return best


def _traits(line: str) -> _Traits:
    return len(line.strip()), tuple(sorted(_NUMBER.findall(line)))


def _mismatch(one: _Traits, other: _Traits) -> float:
    return abs(math.log((one[0] + 1) / (other[0] + 1))) + (one[1] != other[1])


def _clean_pairs(
    split: str, sides: list[FoundText], tallies: list[LineTally], normal_form: str
) -> Iterator[tuple[str, str]]:
    """Cleaned pairs. Raises UserError, after the last common line, if one side is longer."""
    src, tgt = (side.lines(tally) for side, tally in zip(sides, tallies, strict=True))
    for pair in zip_longest(src, tgt):
        if None in pair:
            deque(chain(src, tgt), maxlen=0)  # counts the rest
            raise _misaligned(split, sides, [tally.lines for tally in tallies])
        yield tuple(map(clean, pair, repeat(normal_form), tallies))


def _misaligned(split: str, sides: list[FoundText], lengths: list[int]) -> UserError:
    known = list(zip(sides, lengths, strict=True))
    (shorter, fewer), (longer, more) = sorted(known, key=lambda side: side[1])
    again = (side.lines(LineTally()) for side in (shorter, longer))
    listed = "; ".join(f"{side.shown} has {lines} lines" for side, lines in known)
    return UserError(
        f"{split}: the two sides are not aligned: {listed}. The first suspicious line is "
        f"{parting_line(*again, more - fewer)} (by length and numbers, a guess). Line i of one "
        "file must translate line i of the other; mend or replace the files."
    )
