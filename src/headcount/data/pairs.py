"""The published sentence pairs of a split, read in the formats of their files, by its rules."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.errors import UserError
from headcount.base.random_streams import Stream
from headcount.base.settings.sources import Draw
from headcount.data.manifest import FoundText, find_file, find_side, read_manifest
from headcount.data.markup import elements, read_memory, read_segments, shown_key

# IWSLT's lines about a talk. Its title and description are translated and stay.
_ABOUT_TALK = re.compile(r"\s*</?(url|talkid|keywords|speaker|reviewer|translator|doc)\b")
_TITLES = re.compile(r"</?(title|description)>")


def read_sentences(text: FoundText) -> Iterator[str]:
    """Return the sentences of a raw text. Raises UserError for a faulty one, even at its end."""
    return _READERS[text.format](text)


def _moses(text: FoundText) -> Iterator[str]:
    """Decode the entities of Moses's tokeniser, which a scorer's tokeniser would cut to pieces."""
    import sacremoses  # takes a quarter of a second that not every text needs

    return map(sacremoses.MosesDetokenizer().unescape_xml, text.lines())


def _ted(text: FoundText) -> Iterator[str]:
    return (_TITLES.sub("", line) for line in text.lines() if not _ABOUT_TALK.match(line))


def _tsv(text: FoundText) -> Iterator[str]:
    rows = (line.split(text.separator or "\t") for line in text.lines())
    return _column(enumerate(rows, start=1), text)


def _csv(text: FoundText) -> Iterator[str]:
    """Yield a column of a table whose quoted cells may have separators and line ends."""
    lines = (f"{line}\n" for line in text.lines())
    rows = csv.reader(lines, delimiter=text.separator or ",", strict=True)
    try:
        yield from _column(((rows.line_num, row) for row in rows), text)
    except csv.Error as fault:
        raise UserError(f"{text.name}:{rows.line_num}: not CSV ({fault}); mend the line") from None


def _column(rows: Iterator[tuple[int, list[str]]], text: FoundText) -> Iterator[str]:
    """Yield one cell of each row. The first row has names if the column is given by a name."""
    place = text.column
    if isinstance(place, str):
        number, names = next(rows, (1, []))
        if place not in names:
            listed = ", ".join(names) or "none"
            raise UserError(f"{text.name}:{number}: expected a column {place!r}, found {listed}")
        place = names.index(place) + 1
    for number, cells in rows:
        if len(cells) < place:
            raise UserError(f"{text.name}:{number}: expected {place} columns, found {len(cells)}")
        yield cells[place - 1]


_READERS: dict[str, Callable[[FoundText], Iterator[str]]] = {
    "plain": FoundText.lines,
    "moses": _moses,
    "sgm": lambda text: iter(read_segments(text).values()),
    "ted": _ted,
    "tmx": read_memory,
    "tsv": _tsv,
    "csv": _csv,
    "wmt": lambda text: iter(read_segments(text).values()),
}


Row = tuple[str, ...]  # a sentence and its translations


class RawSplit:
    """The sentences of one split in two languages, and the number of pairs left out of it."""

    def __init__(
        self, manifest: Path, split: str, languages: tuple[str, str], draw: Draw | None = None
    ):
        """Raises UserError if the manifest lacks the split, or a file differs from the manifest."""
        about = read_manifest(manifest)
        self._split = split
        self._rules: dict[str, dict[str, Any]] = about.get("hold_out", {})
        self._of: str = self._rules.get(split, {"of": split})["of"]
        src, tgt = (find_side(manifest, self._of, language) for language in languages)
        if len(src[0]) > 1:
            raise UserError(f"{split}: {languages[0]} has several references and is no source")
        self._parts = [[*one, *others] for one, others in zip(src, tgt, strict=True)]
        overlap = about.get("overlap", {}).get(self._of)
        self._least = overlap["at_least"] if overlap else 0.0
        self._times = [find_file(manifest, overlap[k]) for k in ("ids", "links")] if overlap else []
        self._draw = draw
        self.references = len(tgt[0])
        self.left_out: dict[str, int] = {}  # published pairs that are not in the split, by rule

    @property
    def shown(self) -> str:
        """Names of its files for messages."""
        return ", ".join(dict.fromkeys(text.shown for part in self._parts for text in part))

    def rows(self) -> Iterator[Row]:
        """Return the rows of the split."""
        if self._draw is None:
            return self._undrawn()
        total = sum(1 for _ in self._undrawn())
        wanted, seed = self._draw.pairs, self._draw.seed
        if wanted > total:
            least = f"the {wanted} pairs of draw.{self._split}"
            raise UserError(f"{self.shown}: expected at least {least}, found {total}")
        drawn = np.zeros(total, dtype=bool)
        chooser = Stream.PAIRS.generator(seed)
        drawn[chooser.choice(total, wanted, replace=False, shuffle=False)] = True
        return self._taken("draw", zip(self._undrawn(), drawn, strict=True))

    def _undrawn(self) -> Iterator[Row]:
        self.left_out = {}
        rows = chain.from_iterable(map(self._aligned, self._parts))
        if self._times:
            rows = self._taken("overlap", self._in_time(rows))
        if any(rule["of"] == self._of for rule in self._rules.values()):
            numbered = enumerate(rows, start=1)
            held = ((row, self._taker(number) == self._split) for number, row in numbered)
            rows = self._taken("hold_out", held)
        return rows

    def _taken(self, rule: str, rows: Iterable[tuple[Row, bool]]) -> Iterator[Row]:
        """Yield the rows that a rule takes, and count the others."""
        self.left_out[rule] = 0
        for row, taken in rows:
            if taken:
                yield row
            else:
                self.left_out[rule] += 1

    def _in_time(self, rows: Iterator[Row]) -> Iterator[tuple[Row, bool]]:
        """Yield rows, each with True if its times overlap enough."""
        for row, share in zip_longest(rows, overlaps(*self._times)):
            if row is None or share is None:
                lines = f"{self._times[0].shown} has lines"
                raise UserError(f"{self.shown}: expected as many pairs as {lines}; get both again")
            yield row, share >= self._least

    def _taker(self, number: int) -> str:
        """Return the first split whose rule `every` takes this row."""
        rules = ((name, rule) for name, rule in self._rules.items() if rule["of"] == self._of)
        return next((name for name, rule in rules if number % rule["every"] == 0), self._of)

    def _aligned(self, texts: list[FoundText]) -> Iterator[Row]:
        """Yield rows of parallel texts: by their segments' keys if all have keys."""
        if all(text.format in ("sgm", "wmt") for text in texts):
            yield from self._by_key(texts)
            return
        for row in zip_longest(*map(read_sentences, texts)):
            if None in row:
                counts = (
                    f"{t.name} has {sum(1 for _ in read_sentences(t))} sentences" for t in texts
                )
                raise UserError(
                    f"{self._split}: the sides are not aligned: {', '.join(counts)}; mend them"
                )
            yield row

    def _by_key(self, texts: list[FoundText]) -> Iterator[Row]:
        """Yield rows in the order of the source, whatever the order of a reference."""
        sides = list(map(read_segments, texts))
        known = list(zip(texts, sides, strict=True))
        for (one, mine), (other, theirs) in chain(pairwise(known), pairwise(known[::-1])):
            if lacking := [key for key in mine if key not in theirs]:
                keys = f"{shown_key(lacking[0])} and {len(lacking) - 1} more"
                places = f"are in {one.name} and missing in {other.name}"
                raise UserError(f"{self._split}: {keys} {places}; get both again")
        yield from zip(*([segments[key] for key in sides[0]] for segments in sides), strict=True)


def overlaps(ids: FoundText, links: FoundText) -> Iterator[float]:
    """Yield, for each pair of a Moses release of OPUS, the share of time with both subtitles.

    `ids` has a line for each pair. `links`, an XCES alignment in the same order, has more links.
    """
    known = _links(links)
    for number, line in enumerate(ids.lines(), start=1):
        wanted = tuple(line.split("\t"))
        share = next((share for link, share in known if link == wanted), None)
        if share is None:
            link = f"the link of {' '.join(wanted)} in {links.shown}"
            raise UserError(f"{ids.name}:{number}: expected {link}, found none; get both again")
        yield share


def _links(links: FoundText) -> Iterator[tuple[Row, float]]:
    with links.opened() as stream:
        for link, group in elements(stream, "link", links.name):
            sentences = link.get("xtargets", "").split(";")
            documents = (group.get("fromDoc", ""), group.get("toDoc", ""))
            yield (*documents, *sentences), float(link.get("overlap", 0))
