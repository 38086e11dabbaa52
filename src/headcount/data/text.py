"""Aligned sentence pairs: cleaned, filtered for training, counted, written line by line."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from headcount.base.files import whole_file, write_json
from headcount.base.settings.data import TextSettings
from headcount.base.settings.sources import Draw
from headcount.data.filters import PairFilter
from headcount.data.lines import LineTally, read_lines
from headcount.data.normalisation import normaliser
from headcount.data.pairs import RawSplit

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

    `draw` selects pairs before any filter. Several references stand in one line, separated by tabs,
    and filters read the first. Filters drop pairs of the split `train` only and count elsewhere.
    `held_out`: source files for the filter `overlap`. `counts` is written as JSON. Raises UserError
    and writes nothing if a raw file is faulty, the sides differ in length, nothing remains, or a
    filter drops more than the settings allow.
    """
    raw = RawSplit(manifest, split, languages, draw)
    tallies = LineTally(), LineTally()
    judge = PairFilter(settings, held_out, active=split == "train")
    with ExitStack() as stack:
        parts = [stack.enter_context(whole_file(path)) for path in out]
        src, tgt = (
            stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts
        )
        for one, *others in _normalised(raw, tallies, settings):
            if judge.keeps(one, others[0]):
                src.write(f"{one}\n")
                tgt.write("\t".join(others) + "\n")
        judge.check_losses(raw.shown)
    facts = {"split": split, "src_lang": languages[0], "tgt_lang": languages[1]}
    facts |= {"references": raw.references, "left_out": raw.left_out}
    facts |= {"pairs_read": judge.pairs, "pairs_kept": judge.pairs - sum(judge.dropped.values())}
    facts |= {"found": judge.found, "dropped": judge.dropped, "equal": judge.equal}
    write_json(counts, facts | {"src": asdict(tallies[0]), "tgt": asdict(tallies[1])})


def _normalised(
    raw: RawSplit, tallies: tuple[LineTally, LineTally], settings: TextSettings
) -> Iterator[list[str]]:
    normalise = normaliser(settings)
    for source, *translations in raw.rows(tallies):
        others = (clean(translation, tallies[1]) for translation in translations)
        yield [normalise(line) for line in (clean(source, tallies[0]), *others)]


def clean(line: str, tally: LineTally) -> str:
    """Return the line with single spaces between its words.

    White space and control characters separate words. Byte order marks are removed. Other invisible
    characters stay, but a line of nothing else is empty. `tally` counts them.
    """
    if not line.isascii():
        tally.bom += line.count("\ufeff")
        line = line.replace("\ufeff", "")
    if odd := _CONTROLS.findall(line):
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
    """Return the cleaned lines of any text, by the line rule of raw text."""
    tally = LineTally()
    return [clean(line, tally) for line in read_lines(path, None, tally)]
