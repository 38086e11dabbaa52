"""Links between words of sentences and of their translations: read, checked, and cut into pieces.

A link is possible or also sure. Words stand between spaces and count from 0.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from headcount.base.errors import UserError, reading
from headcount.data.bpe import AnySegmenter
from headcount.data.lines import FoundText, clean_lines, references, write_lines
from headcount.data.manifest import find_file, read_manifest
from headcount.data.trees import cut_tokens

Pairs = list[tuple[int, int]]  # words of source and target, lists in a file
_TOKEN = re.compile(r"(\d{1,9})([-p?])(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class LinkedPair:
    """A sentence pair as a model reads it: pieces of every word, and links between words."""

    source: list[list[str]]
    target: list[list[str]]
    sure: Pairs
    possible: Pairs  # sure links among them


class GoldLinks(NamedTuple):
    """A raw file of links, and whether its target is our source."""

    text: FoundText
    swapped: bool = False


def find_links(raw: Path, split: str, src: str, tgt: str) -> GoldLinks:
    """Return the links of a split of a manifest, in either direction, or `raw` if it is none."""
    if raw.suffix != ".json":
        return GoldLinks(FoundText(raw))
    listed = read_manifest(raw).get("links", {}).get(split, {})
    for name, swapped in ((f"{src}-{tgt}", False), (f"{tgt}-{src}", True)):
        if name in listed:
            return GoldLinks(find_file(raw, listed[name]), swapped)
    known = ", ".join(listed) or "none"
    raise UserError(f"{raw}: expected links of {split} for {src}-{tgt}, found {known}")


def linked_pairs(
    links: GoldLinks, texts: tuple[Path, Path], segmenters: tuple[AnySegmenter, AnySegmenter]
) -> Iterator[LinkedPair]:
    """Yield sentence pairs of cleaned texts, the first reference of several, with their links."""
    src, tgt = ([references(line)[0].split() for line in clean_lines(path)] for path in texts)
    lines = list(links.text.lines())
    if len(lines) != len(src):
        wanted = f"expected {len(src)} lines, as in {texts[0]}, found {len(lines)}"
        raise UserError(f"{links.text.name}: {wanted}; give every sentence a line, empty or not")
    for number, (line, *words) in enumerate(zip(lines, src, tgt, strict=True), start=1):
        where = f"{links.text.name}:{number}"
        yield linked_pair(line, [*map(cut_tokens, words, segmenters)], where, links.swapped)


def linked_pair(
    line: str, words: Sequence[list[list[str]]], where: str, swapped: bool = False
) -> LinkedPair:
    """Return source and target, pieces by word, with their line of links."""
    sizes = (len(words[0]), len(words[1]))
    sure, possible = _read(line, sizes[::-1] if swapped else sizes, where)
    if swapped:
        sure, possible = ([(t, s) for s, t in pairs] for pairs in (sure, possible))
    return LinkedPair(*words, sorted(sure), sorted(possible))


def _read(line: str, sizes: tuple[int, int], where: str) -> tuple[Pairs, Pairs]:
    """Return the sure and the possible links of a line, for sentences of these sizes."""
    kinds: dict[str, set[tuple[int, int]]] = {"-": set(), "p": set()}
    for token in line.split():
        match = _TOKEN.fullmatch(token)
        if not match:
            form = "links such as 0-0, or 1p2 for one that is only possible"
            raise UserError(f"{where}: expected {form}, found {token[:50]!r}")
        link = int(match[1]), int(match[3])
        if link[0] >= sizes[0] or link[1] >= sizes[1]:
            counted = f"{sizes[0]} and {sizes[1]} words, counted from 0"
            raise UserError(f"{where}: {token}: this line pair has {counted}; correct the link")
        kinds["-" if match[2] == "-" else "p"].add(link)
    return list(kinds["-"]), list(kinds["-"] | kinds["p"])


def write_linked(path: Path, pairs: Iterator[LinkedPair]) -> None:
    """Write sentence pairs as JSON, one a line."""
    write_lines(path, (json.dumps(asdict(pair), ensure_ascii=False) for pair in pairs))


def read_linked(path: Path, number: int | None = None) -> list[LinkedPair]:
    """Return the sentence pairs that `write_linked` wrote, at most the first `number`."""
    with reading(path, "scripts/links.py"):
        lines = map(json.loads, islice(clean_lines(path), number))
        return [LinkedPair(**line) for line in lines]
