"""Sentences of a raw file in the format in which it was published: lines, tables, markup."""

import csv
import re
from collections.abc import Callable, Iterator

from headcount.base.errors import UserError
from headcount.data.formats.markup import read_memory, read_segments
from headcount.data.lines import LineTally
from headcount.data.manifest import FoundText

KEYED = frozenset({"sgm", "wmt"})
"""Formats whose segments have keys."""

# IWSLT's lines about a talk. Its title and description are translated and stay.
_ABOUT_TALK = re.compile(r"\s*</?(url|talkid|keywords|speaker|reviewer|translator|doc)\b")
_TITLES = re.compile(r"</?(title|description)>")


def read_sentences(text: FoundText, tally: LineTally) -> Iterator[str]:
    """Yield the sentences of a raw text in its order and count in `tally`.

    Raises UserError for a damaged or unsuitable file, as late as at its end.
    """
    yield from _READERS[text.format](text, tally)


def _moses(text: FoundText, tally: LineTally) -> Iterator[str]:
    """Decode the entities of Moses's tokeniser, which a scorer's tokeniser would cut to pieces."""
    import sacremoses  # takes a quarter of a second that not every text needs

    yield from map(sacremoses.MosesDetokenizer().unescape_xml, text.lines(tally))


def _ted(text: FoundText, tally: LineTally) -> Iterator[str]:
    for line in text.lines(tally):
        if not _ABOUT_TALK.match(line):
            yield _TITLES.sub("", line)


def _tsv(text: FoundText, tally: LineTally) -> Iterator[str]:
    rows = (line.split(text.separator or "\t") for line in text.lines(tally))
    yield from _column(enumerate(rows, start=1), text)


def _csv(text: FoundText, tally: LineTally) -> Iterator[str]:
    """Yield a column of a table whose quoted cells may have separators and line ends."""
    lines = (f"{line}\n" for line in text.lines(tally))
    rows = csv.reader(lines, delimiter=text.separator or ",", strict=True)
    try:
        yield from _column(((rows.line_num, row) for row in rows), text)
    except csv.Error as fault:
        raise UserError(f"{text.name}:{rows.line_num}: not CSV ({fault}); mend the line") from None


def _column(rows: Iterator[tuple[int, list[str]]], text: FoundText) -> Iterator[str]:
    """Yield one cell of each row. The first row has names if the column is given by a name."""
    place, hint = text.column, "correct the column or the separator in config/corpora.yaml"
    if isinstance(place, str):
        number, names = next(rows, (1, []))
        if place not in names:
            listed = ", ".join(names) or "none"
            raise UserError(
                f"{text.name}:{number}: expected a column {place!r}, found {listed}; {hint}"
            )
        place = names.index(place) + 1
    for number, cells in rows:
        if len(cells) < place:
            raise UserError(
                f"{text.name}:{number}: expected {place} columns, found {len(cells)}; {hint}"
            )
        yield cells[place - 1]


_READERS: dict[str, Callable[[FoundText, LineTally], Iterator[str]]] = {
    "plain": FoundText.lines,
    "moses": _moses,
    "sgm": lambda text, tally: iter(read_segments(text, tally).values()),
    "ted": _ted,
    "tmx": read_memory,
    "tsv": _tsv,
    "csv": _csv,
    "wmt": lambda text, tally: iter(read_segments(text, tally).values()),
}
