"""Aligned sentence pairs: cleaned, filtered for training, counted, written line by line."""

import re
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from headcount.base.errors import UserError
from headcount.base.files import whole_file, write_json
from headcount.base.settings.text import TextSettings
from headcount.data.alignment import parting_line
from headcount.data.filters import PairFilter
from headcount.data.lines import LineTally, read_lines
from headcount.data.manifest import find_text

_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_CONTROLS = re.compile(f"[\x01-\x08\x0e-\x1f\x7f-\x9f{_BREAKS}]")


class Side(NamedTuple):
    """One side of a split: its raw text, what messages call it, and what reading it met."""

    path: Path
    member: str | None
    shown: str
    tally: LineTally

    def lines(self, tally: LineTally) -> Iterator[str]:
        """Raw lines, counted in a tally."""
        return read_lines(self.path, self.member, tally, self.shown)


class TextFiles(NamedTuple):
    """The three files the text step writes."""

    src: Path
    tgt: Path
    counts: Path


def write_split(
    manifest: Path,
    languages: tuple[str, str],
    split: str,
    settings: TextSettings,
    held_out: Sequence[Path],
    out: TextFiles,
) -> None:
    """Write one split of a pair: two text files, line i of one translating line i of the other.

    The filters leave lines out of the split `train` only; elsewhere they count. `held_out` are
    source files already written, for the overlap. The counts are JSON: pairs read and kept;
    `found` and `dropped` by filter; what reading met on each side. Raises UserError, and writes
    nothing, if a raw file is faulty, the sides differ in length, nothing remains, or a filter drops
    more than the settings allow.
    """
    sides = tuple(Side(*find_text(manifest, split, each), LineTally()) for each in languages)
    files = ", ".join(side.shown for side in sides)
    judge = PairFilter(settings, held_out, active=split == "train")
    pairs = ((a, b) for a, b in _clean_pairs(split, sides, settings) if judge.keeps(a, b))
    with ExitStack() as stack:
        parts = [stack.enter_context(whole_file(path)) for path in (out.src, out.tgt)]
        kept = _write_pairs(pairs, parts)
        if judge.with_words == 0:
            raise UserError(
                f"{files}: no {split} pair with words on both sides "
                f"remains of {sides[0].tally.lines}; dropped: {judge.dropped}. "
                "Check the files and the text settings."
            )
        judge.check_losses(files)
    write_json(out.counts, _counts(split, languages, sides, judge, kept))


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


def _clean_pairs(
    split: str, sides: tuple[Side, Side], settings: TextSettings
) -> Iterator[tuple[str, str]]:
    """Cleaned pairs. Raises UserError, after the last common line, if one side is longer."""
    src, tgt = (side.lines(side.tally) for side in sides)
    for pair in zip_longest(src, tgt):
        if None in pair:
            deque(chain(src, tgt), maxlen=0)  # counts the rest
            raise _misaligned(split, sides)
        yield tuple(
            clean(line, settings.normal_form, side.tally)
            for line, side in zip(pair, sides, strict=True)
        )


def _misaligned(split: str, sides: tuple[Side, Side]) -> UserError:
    shorter, longer = sorted(sides, key=lambda side: side.tally.lines)
    surplus = longer.tally.lines - shorter.tally.lines
    again = (side.lines(LineTally()) for side in (shorter, longer))
    listed = "; ".join(f"{side.shown} has {side.tally.lines} lines" for side in sides)
    return UserError(
        f"{split}: the two sides are not aligned: {listed}. The first suspicious line is "
        f"{parting_line(*again, surplus)} (by length and numbers, a guess). Line i of one file "
        "must translate line i of the other; mend or replace the files."
    )


def _write_pairs(pairs: Iterator[tuple[str, str]], parts: Sequence[Path]) -> int:
    """Write each side to its file; returns the number of pairs."""
    kept = 0
    with ExitStack() as stack:
        src, tgt = (
            stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts
        )
        for pair in pairs:
            src.write(f"{pair[0]}\n")
            tgt.write(f"{pair[1]}\n")
            kept += 1
    return kept


def _counts(
    split: str, languages: tuple[str, str], sides: tuple[Side, Side], judge: PairFilter, kept: int
) -> dict[str, Any]:
    return {
        "split": split,
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "pairs_read": sides[0].tally.lines,
        "pairs_kept": kept,
        "found": judge.found,
        "dropped": judge.dropped,
        "src": asdict(sides[0].tally),
        "tgt": asdict(sides[1].tally),
    }
