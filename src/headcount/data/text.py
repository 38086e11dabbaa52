"""Aligned sentence pairs: cleaned, filtered for training, counted, written line by line."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import whole_file, write_json
from headcount.base.settings.data import TextSettings
from headcount.base.settings.text.sources import Draw
from headcount.data.filters import PairFilter
from headcount.data.lines import LineTally, read_lines
from headcount.data.pairs import RawSplit
from headcount.data.spelling import spelling

_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_INVISIBLE = re.compile("[\u200b\u2060\xad]")
_SPACED = re.compile(r" [.,](?: |$)")
_CONTROLS = re.compile(f"[\x01-\x08\x0e-\x1f\x7f-\x9f{_BREAKS}]")


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

    With `draw`, of so many of its pairs, in the order of the text; filters come after that.
    Of several references all are written, with tabs between them; filters see the first. They leave
    lines out of the split `train` only; elsewhere they count. `held_out` are source files already
    written, for the overlap. The counts are JSON: references; pairs that the corpus's rules left
    out, and that were then read and kept; `found` and `dropped` by filter; what reading met on each
    side. Raises UserError, and writes nothing, if a raw file is faulty, the sides differ in length,
    nothing remains, or a filter drops more than the settings allow.
    """
    raw = RawSplit(manifest, split, languages, draw)
    tallies = LineTally(), LineTally()
    judge = PairFilter(settings, held_out, active=split == "train")
    spell = spelling(settings)
    read = kept = 0
    with ExitStack() as stack:
        parts = [stack.enter_context(whole_file(path)) for path in out]
        src, tgt = (
            stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts
        )
        for sentence, *translations in raw.rows(tallies):
            read += 1
            one = spell(clean(sentence, tallies[0]))
            others = [spell(clean(each, tallies[1])) for each in translations]
            if judge.keeps(one, others[0]):
                kept += 1
                src.write(f"{one}\n")
                tgt.write("\t".join(others) + "\n")
        if not judge.with_words:
            raise _nothing_remains(raw.shown, split, read, judge.dropped)
        judge.check_losses(raw.shown)
    found = {
        "split": split,
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "references": raw.references,
        "left_out": raw.left_out,
        "pairs_read": read,
        "pairs_kept": kept,
        "found": judge.found,
        "dropped": judge.dropped,
        "equal": judge.equal,
        "src": asdict(tallies[0]),
        "tgt": asdict(tallies[1]),
    }
    write_json(counts, found)


def _nothing_remains(files: str, split: str, read: int, dropped: dict[str, int]) -> UserError:
    return UserError(
        f"{files}: no {split} pair with words on both sides remains of {read}; dropped: {dropped}. "
        "Check the files and the text settings."
    )


def clean(line: str, tally: LineTally) -> str:
    """Return the line with single spaces between its words.

    Every white space (U+00A0 and U+3000 too) and control character separates words. Those that
    some readers take for a line end, and other control characters, are counted in `tally`. Byte
    order marks go, wherever they are. Other invisible characters are counted and stay, but a line
    of nothing else is empty.
    """
    if not line.isascii():
        tally.bom += line.count("\ufeff")
        line = line.replace("\ufeff", "")
    odd = _CONTROLS.findall(line)
    if odd:
        breaks = sum(character in _BREAKS for character in odd)
        tally.line_breaks += breaks
        tally.controls += len(odd) - breaks
        line = _CONTROLS.sub(" ", line)
    line = " ".join(line.split())
    tally.spaced += _SPACED.search(line) is not None
    invisible = 0 if line.isascii() else len(_INVISIBLE.findall(line))
    tally.invisible += invisible
    return "" if invisible and not _INVISIBLE.sub("", line).strip() else line


def read_clean(path: Path) -> list[str]:
    """Cleaned lines of a text by the line rule of raw text, so that it may be anyone's."""
    tally = LineTally()
    return [clean(line, tally) for line in read_lines(path, None, tally)]
