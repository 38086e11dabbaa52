"""A split as it was published: aligned sentences, and which of them it takes."""

from collections.abc import Callable, Iterator
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.errors import UserError
from headcount.base.random_streams import Stream
from headcount.base.settings.text.sources import Draw
from headcount.data.archives import named, unpacked
from headcount.data.formats import KEYED, read_sentences
from headcount.data.lines import LineTally
from headcount.data.manifest import FoundText, find_file, find_side, read_manifest
from headcount.data.markup import elements, read_segments, shown_key
from headcount.data.parting import parting_line

Row = tuple[str, ...]
"""A sentence and its translation, or its translations."""


class RawSplit:
    """The sentences of one split in two languages, and how many pairs were left out of it."""

    def __init__(
        self, manifest: Path, split: str, languages: tuple[str, str], draw: Draw | None = None
    ):
        """Raises UserError if the manifest has no such split, or a file is not the one it says."""
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
        """Translations of each sentence."""
        self.left_out: dict[str, int] = {}
        """Pairs that were published and are not in the split, by the rule that left them out."""

    @property
    def shown(self) -> str:
        """Its files, for messages."""
        return ", ".join(dict.fromkeys(text.shown for part in self._parts for text in part))

    def rows(self, tallies: tuple[LineTally, LineTally]) -> Iterator[Row]:
        """The rows of the split. What reading meets is counted, for the source and for the target.

        Raises UserError if a file is faulty, if sides differ in length or in their segments, and if
        fewer pairs than are to be drawn remain. It can show as late as at the end.
        """
        if self._draw is None:
            return self._undrawn(tallies)
        total = sum(1 for _ in self._undrawn((LineTally(), LineTally())))
        wanted, seed = self._draw.pairs, self._draw.seed
        if wanted > total:
            raise UserError(
                f"{self.shown}: expected at least the {wanted} pairs of draw.{self._split}, found "
                f"{total}; lower that number in config/corpora.yaml, or add a source"
            )
        drawn = np.zeros(total + 1, dtype=bool)
        chooser = Stream.PAIRS.generator(seed)
        drawn[1 + chooser.choice(total, wanted, replace=False, shuffle=False)] = True
        return self._only("draw", self._undrawn(tallies), lambda number: drawn[number])

    def _undrawn(self, tallies: tuple[LineTally, LineTally]) -> Iterator[Row]:
        self.left_out = {}
        rows = chain.from_iterable(self._aligned(part, tallies) for part in self._parts)
        if self._times:
            shares = overlaps(*self._times)
            rows = self._only("overlap", rows, lambda _: self._next(shares) >= self._least)
            rows = chain(rows, self._ended(shares))
        if any(rule["of"] == self._of for rule in self._rules.values()):
            rows = self._only("hold_out", rows, lambda number: self._taker(number) == self._split)
        return rows

    def _only(self, rule: str, rows: Iterator[Row], takes: Callable[[int], bool]) -> Iterator[Row]:
        """The rows whose number, from 1, a rule takes; counts the others."""
        self.left_out[rule] = 0
        for number, row in enumerate(rows, start=1):
            if takes(number):
                yield row
            else:
                self.left_out[rule] += 1

    def _next(self, shares: Iterator[float]) -> float:
        share = next(shares, None)
        if share is None:
            raise UserError(f"{self._times[0].shown}: ends before {self.shown}; get them again")
        return share

    def _ended(self, shares: Iterator[float]) -> Iterator[Row]:
        """No row. Raises UserError unless each share was that of a pair, which another may have."""
        for _ in shares:
            raise UserError(
                f"{self.shown}: ends before {self._times[0].shown}; get both again, of one release"
            )
        yield from ()

    def _taker(self, number: int) -> str:
        """The split that takes a row: the first that is held out of its own and counts to it."""
        rules = ((name, rule) for name, rule in self._rules.items() if rule["of"] == self._of)
        return next((name for name, rule in rules if number % rule["every"] == 0), self._of)

    def _aligned(
        self, texts: list[FoundText], tallies: tuple[LineTally, LineTally]
    ) -> Iterator[Row]:
        """Rows of texts that lie beside each other: by their segments' keys if all have keys."""
        counted = [tallies[0], *[tallies[1]] * (len(texts) - 1)]
        if all(text.format in KEYED for text in texts):
            yield from self._by_key(texts, counted)
            return
        readers = [read_sentences(*each) for each in zip(texts, counted, strict=True)]
        for row in zip_longest(*readers):
            if None in row:
                raise self._misaligned(texts)
            yield row

    def _by_key(self, texts: list[FoundText], tallies: list[LineTally]) -> Iterator[Row]:
        """Rows in the order of the source, whatever that of a reference."""
        found = [read_segments(*each) for each in zip(texts, tallies, strict=True)]
        known = list(zip(texts, found, strict=True))
        for (one, mine), (other, theirs) in chain(pairwise(known), pairwise(known[::-1])):
            lacking = [key for key in mine if key not in theirs]
            if not lacking:
                continue
            whole = lacking[0][0] not in {document for document, _ in theirs}
            what = f"document {lacking[0][0]}" if whole else shown_key(lacking[0])
            names = (named(text.path, text.member, text.shown) for text in (one, other))
            raise UserError(
                f"{self._split}: {what} is in {' and missing in '.join(names)}, as are "
                f"{len(lacking) - 1} more segments; get both again"
            )
        yield from zip(*([segments[key] for key in found[0]] for segments in found), strict=True)

    def _misaligned(self, texts: list[FoundText]) -> UserError:
        lengths = [sum(1 for _ in read_sentences(text, LineTally())) for text in texts]
        other = next(i for i, length in enumerate(lengths) if length != lengths[0])
        known = [(texts[i], lengths[i]) for i in (0, other)]
        (shorter, fewer), (longer, more) = sorted(known, key=lambda side: side[1])
        again = (read_sentences(side, LineTally()) for side in (shorter, longer))
        listed = "; ".join(
            f"{named(side.path, side.member, side.shown)} has {count} {_units(side)}"
            for side, count in known
        )
        unit = _units(texts[0])[:-1]
        return UserError(
            f"{self._split}: the two sides are not aligned: {listed}. The first suspicious {unit} "
            f"is {parting_line(*again, more - fewer)} (by length and numbers, a guess). Each must "
            "translate the one of the same number; mend or replace the files."
        )


def _units(text: FoundText) -> str:
    """What a file holds one after another: lines, or in a format that has others, sentences."""
    return "lines" if text.format == "plain" else "sentences"


def overlaps(ids: FoundText, links: FoundText) -> Iterator[float]:
    """Of each pair in a Moses release of OPUS, the share of the time that both subtitles show.

    `ids` has a line for each pair: two documents and the numbers of their sentences, with tabs
    between them. `links` is the XCES alignment that the pairs were taken from, in the same order;
    some of its links have no pair. A link without an overlap has 0. Raises UserError for a pair
    whose link is not there.
    """
    known = _links(links)
    for number, line in enumerate(ids.lines(LineTally()), start=1):
        documents_sentences = tuple(line.split("\t"))
        share = next((share for link, share in known if link == documents_sentences), None)
        if share is None:
            raise UserError(
                f"{named(ids.path, ids.member, ids.shown)}:{number}: expected the link of "
                f"{' '.join(documents_sentences)} in {links.shown}, found none in the order of its "
                "pairs; get both again, of one release"
            )
        yield share


def _links(links: FoundText) -> Iterator[tuple[Row, float]]:
    name = named(links.path, links.member, links.shown)
    with unpacked(links.path, links.member, links.shown) as stream:
        for link, group in elements(stream, "link", name):
            sentences = link.get("xtargets", "").split(";")
            documents = (group.get("fromDoc", ""), group.get("toDoc", ""))
            yield (*documents, *sentences), float(link.get("overlap", 0))
