"""The published sentence pairs of a split, after the rules of its corpus."""

from collections.abc import Callable, Iterator
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from headcount.base.errors import UserError
from headcount.base.random_streams import Stream
from headcount.base.settings.sources import Draw
from headcount.data.formats.markup import elements, read_segments, shown_key
from headcount.data.formats.sentences import KEYED, read_sentences
from headcount.data.lines import LineTally
from headcount.data.manifest import FoundText, find_file, find_side, read_manifest

Row = tuple[str, ...]
"""A sentence and its translation, or its translations."""


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
        """Translations of each sentence."""
        self.left_out: dict[str, int] = {}
        """Published pairs that are not in the split, by the rule that left them out."""

    @property
    def shown(self) -> str:
        """Names of its files for messages."""
        return ", ".join(dict.fromkeys(text.shown for part in self._parts for text in part))

    def rows(self, tallies: tuple[LineTally, LineTally]) -> Iterator[Row]:
        """Yield the rows of the split, with a tally of the source and one of the target.

        Raises UserError if a file is faulty, if sides differ in length or in their segments, and if
        fewer pairs remain than are to be drawn. This may only show at the end.
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
            rows = self._overlapping(rows)
        if any(rule["of"] == self._of for rule in self._rules.values()):
            rows = self._only("hold_out", rows, lambda number: self._taker(number) == self._split)
        return rows

    def _only(self, rule: str, rows: Iterator[Row], takes: Callable[[int], bool]) -> Iterator[Row]:
        """Yield the rows whose number, from 1, a rule takes, and count the others."""
        self.left_out[rule] = 0
        for number, row in enumerate(rows, start=1):
            if takes(number):
                yield row
            else:
                self.left_out[rule] += 1

    def _overlapping(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows whose times overlap enough, and count the others."""
        self.left_out["overlap"] = 0
        for row, share in zip_longest(rows, overlaps(*self._times)):
            if row is None or share is None:
                raise UserError(
                    f"{self.shown}: expected as many pairs as {self._times[0].shown} has lines; "
                    "get both again, of one release"
                )
            if share >= self._least:
                yield row
            else:
                self.left_out["overlap"] += 1

    def _taker(self, number: int) -> str:
        """Return the first split whose rule `every` takes this row."""
        rules = ((name, rule) for name, rule in self._rules.items() if rule["of"] == self._of)
        return next((name for name, rule in rules if number % rule["every"] == 0), self._of)

    def _aligned(
        self, texts: list[FoundText], tallies: tuple[LineTally, LineTally]
    ) -> Iterator[Row]:
        """Yield rows of parallel texts: by their segments' keys if all have keys."""
        counted = [tallies[0], *[tallies[1]] * (len(texts) - 1)]
        if all(text.format in KEYED for text in texts):
            yield from self._by_key(texts, counted)
            return
        for row in zip_longest(*map(read_sentences, texts, counted)):
            if None in row:
                raise self._misaligned(texts)
            yield row

    def _by_key(self, texts: list[FoundText], tallies: list[LineTally]) -> Iterator[Row]:
        """Yield rows in the order of the source, whatever the order of a reference."""
        sides = list(map(read_segments, texts, tallies))
        known = list(zip(texts, sides, strict=True))
        for (one, mine), (other, theirs) in chain(pairwise(known), pairwise(known[::-1])):
            lacking = [key for key in mine if key not in theirs]
            if lacking:
                raise UserError(
                    f"{self._split}: {shown_key(lacking[0])} and {len(lacking) - 1} more are in "
                    f"{one.name} and missing in {other.name}; get both again"
                )
        yield from zip(*([segments[key] for key in sides[0]] for segments in sides), strict=True)

    def _misaligned(self, texts: list[FoundText]) -> UserError:
        counts = [sum(1 for _ in read_sentences(text, LineTally())) for text in texts]
        sides = (f"{text.name} has {n} sentences" for text, n in zip(texts, counts, strict=True))
        return UserError(
            f"{self._split}: the sides are not aligned: {', '.join(sides)}; mend or replace them"
        )


def overlaps(ids: FoundText, links: FoundText) -> Iterator[float]:
    """Yield, for each pair of a Moses release of OPUS, the share of time with both subtitles.

    `ids` has a line for each pair: two documents and the numbers of their sentences, separated by
    tabs. `links` is the XCES alignment of the pairs, in the same order. Some of its links have no
    pair. A link without an overlap has 0. Raises UserError for a pair without a link.
    """
    known = _links(links)
    for number, line in enumerate(ids.lines(LineTally()), start=1):
        wanted = tuple(line.split("\t"))
        share = next((share for link, share in known if link == wanted), None)
        if share is None:
            raise UserError(
                f"{ids.name}:{number}: expected the link of {' '.join(wanted)} in {links.shown}, "
                "found none in the order of its pairs; get both again, of one release"
            )
        yield share


def _links(links: FoundText) -> Iterator[tuple[Row, float]]:
    with links.opened() as stream:
        for link, group in elements(stream, "link", links.name):
            sentences = link.get("xtargets", "").split(";")
            documents = (group.get("fromDoc", ""), group.get("toDoc", ""))
            yield (*documents, *sentences), float(link.get("overlap", 0))
