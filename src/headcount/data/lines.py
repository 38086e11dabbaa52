"""Lines of text files by one rule: a line ends at the byte 0x0A and nowhere else.

`str.splitlines`, text mode and `codecs` also split at U+2028, U+0085, a form feed or a lone
carriage return, so that sentence numbers would depend on the reader.
"""

import codecs
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from headcount.base.errors import UserError
from headcount.base.files import whole_file
from headcount.data.formats.archives import named, unpacked

LONGEST_LINE = 16 * 2**20
"""Limit of a line in bytes, so that memory stays bounded."""

_ARRIVING = 2**18  # bytes that are taken from a stream at once: some thousands of sentences


@dataclass
class LineTally:
    """Counts of one side: lines, and the times that a rule was applied."""

    lines: int = 0
    bom: int = 0
    crlf: int = 0
    no_final_newline: int = 0
    line_breaks: int = 0
    controls: int = 0
    invisible: int = 0
    """Invisible characters, which stay: zero-width spaces, word joiners, soft hyphens."""
    spaced: int = 0
    """Lines with a space before a comma or full stop, as tokenised text has."""
    ambiguous: int = 0
    """Units of a TMX file with several sentences in the language, which are left empty."""
    testsuites: int = 0
    """Documents of WMT's test suites, which are left out."""
    tags: dict[str, int] = field(default_factory=dict)
    """Sentences of a TMX file by their language tag."""


def read_lines(path: Path, member: str | None, tally: LineTally, shown: str = "") -> Iterator[str]:
    """Yield the lines of a raw text without line ends, straight from a packed file if it is one.

    Messages call the file `shown`, by default its path. A byte order mark, a carriage return before
    a line end and a missing last line end are accepted and counted in `tally`. Raises UserError,
    with line and byte offset, for bytes that are not UTF-8 and for NUL, and as `unpacked`.
    """
    with unpacked(path, member, shown) as stream:
        raws = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
        yield from _lines(raws, named(path, member, shown), tally)


def arriving_lines(stream: BinaryIO, shown: str, tally: LineTally) -> Iterator[list[str]]:
    """Yield lists of the lines that arrived together, by the rule of `read_lines`.

    A line is yielded as soon as its end arrives, so that a writer who waits for an answer gets it.
    `stream` has `read1`, and messages call it `shown`.
    """
    waiting: deque[bytes] = deque()
    lines = _lines(iter(lambda: waiting.popleft(), None), shown, tally)
    rest = b""
    while arrived := stream.read1(_ARRIVING):
        *whole, rest = (rest + arrived).split(b"\n")
        waiting.extend(line + b"\n" for line in whole)
        if len(rest) > LONGEST_LINE:  # refused below, instead of growing until it ends
            waiting.append(rest)
        if waiting:
            yield list(islice(lines, len(waiting)))
    if rest:
        waiting.append(rest)
        yield list(islice(lines, 1))


def clean_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text that this project wrote: UTF-8, each ended by a line feed."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def references(line: str) -> list[str]:
    """Return the translations in a line of a `.tgt`, separated by tabs. Cleaned text has no tab."""
    return line.split("\t")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by a line feed, whole or not at all."""
    with whole_file(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _lines(raws: Iterator[bytes], name: str, tally: LineTally) -> Iterator[str]:
    offset = 0
    for number, raw in enumerate(raws, start=1):
        where = f"{name}:{number}"
        if number == 1 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UserError(
                f"{where}: byte offset 0: expected UTF-8, found the byte order mark of UTF-16; use "
                "iconv"
            )
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            tally.bom, offset = tally.bom + 1, len(codecs.BOM_UTF8)
            raw = raw[offset:]
        if not raw:
            return
        if len(raw) > LONGEST_LINE:
            raise UserError(f"{where}: line longer than {LONGEST_LINE} bytes; is this a text?")
        tally.lines += 1
        yield _decoded(raw, where, offset, tally)
        offset += len(raw)


def _decoded(raw: bytes, where: str, offset: int, tally: LineTally) -> str:
    body = raw.removesuffix(b"\n")
    tally.no_final_newline += len(body) == len(raw)
    if body.endswith(b"\r"):
        tally.crlf += 1
        body = body[:-1]
    if b"\0" in body:
        raise UserError(
            f"{where}: byte offset {offset + body.index(0)}: expected text, found a NUL byte; "
            "this is UTF-16, a binary file or a damaged one"
        )
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise UserError(
            f"{where}: byte offset {offset + fault.start}: expected UTF-8, found the byte "
            f"0x{body[fault.start]:02X} ({fault.reason}); mend the line or use iconv"
        ) from None
