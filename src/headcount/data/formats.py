"""Sentences of a raw file, in whichever format it was published: plain text, SGML, TMX, tables."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from typing import BinaryIO
from xml.etree import ElementTree

from headcount.base.errors import UserError
from headcount.data.archives import named, unpacked
from headcount.data.lines import LineTally
from headcount.data.manifest import FoundText

Key = tuple[str, str]
"""A document's name, and a segment's in it."""

# What IWSLT writes about a talk; its title and description are translated, and stay.
_ABOUT_TALK = re.compile(r"\s*</?(url|talkid|keywords|speaker|reviewer|translator|doc)\b")
_TITLES = re.compile(r"</?(title|description)>")
_CODES = {"bpt", "ept", "it", "ph", "ut"}  # layout of some program's, in a TMX sentence


def read_sentences(text: FoundText, tally: LineTally) -> Iterator[str]:
    """The sentences of one raw text, in its order. Reading is counted in `tally`.

    `plain`: the lines. `moses`: the lines, with the characters that Moses's tokeniser wrote as
    entities: a scorer's tokeniser would cut these to pieces, and count each. `ted`: the lines
    without what is said about a talk, its title and description without their tags. `tsv`: one
    column. `sgm`: the segments. `tmx`: of each unit the sentence in the text's language, empty if
    it has none.

    Raises UserError for a damaged or unsuitable file, as late as at its end.
    """
    yield from _READERS[text.format](text, tally)


def read_segments(text: FoundText, tally: LineTally) -> dict[Key, str]:
    """The segments of a test set in SGML or XML, as WMT, NIST and IWSLT publish them, by key.

    The files of WMT are no well-formed XML; this reads them as browsers read HTML, and decodes
    entities once. Raises UserError for a segment that is cut, nameless or there twice.
    """
    parser = _Segments(named(text.path, text.member, text.shown))
    for line in text.lines(tally):
        parser.feed(f"{line}\n")
    parser.close()
    return parser.segments(text.translator)


def elements(stream: BinaryIO, tag: str, name: str) -> Iterator[tuple[ElementTree.Element, ...]]:
    """Every element of that name in an XML stream, and the one it stands in, in bounded memory.

    `name` is what messages call the stream. Raises UserError if it is no well-formed XML.
    """
    parents: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(stream, events=("start", "end")):
            if event == "start":
                parents.append(element)
                continue
            parents.pop()
            if _local(element.tag) == tag:
                yield element, parents[-1] if parents else element
                if parents:
                    parents[-1].remove(element)
    except ElementTree.ParseError as fault:
        raise UserError(f"{name}: not well-formed XML ({fault}); get the file again") from None


def _moses(text: FoundText, tally: LineTally) -> Iterator[str]:
    import sacremoses  # takes a quarter of a second that not every text needs

    yield from map(sacremoses.MosesDetokenizer().unescape_xml, text.lines(tally))


def _ted(text: FoundText, tally: LineTally) -> Iterator[str]:
    for line in text.lines(tally):
        if not _ABOUT_TALK.match(line):
            yield _TITLES.sub("", line)


def _tsv(text: FoundText, tally: LineTally) -> Iterator[str]:
    for number, line in enumerate(text.lines(tally), start=1):
        cells = line.split(text.separator)
        if len(cells) < text.column:
            raise UserError(
                f"{named(text.path, text.member, text.shown)}:{number}: expected at least "
                f"{text.column} columns, found {len(cells)}; correct the column or the separator "
                "in config/corpora.yaml"
            )
        yield cells[text.column - 1]


def _tmx(text: FoundText, tally: LineTally) -> Iterator[str]:
    name = named(text.path, text.member, text.shown)
    seen: set[str] = set()
    progress = "{0.lines} good units".format
    with unpacked(text.path, text.member, text.shown, partial(progress, tally)) as stream:
        for unit, _ in elements(stream, "tu", name):
            tally.lines += 1
            found = {_language(side): side.find("{*}seg") for side in unit.iterfind("{*}tuv")}
            seen.update(found)
            segment = found.get(text.language.lower())
            yield "" if segment is None else _words(segment)
    if text.language.lower() not in seen:
        known = ", ".join(sorted(seen)) or "none"
        raise UserError(f"{name}: expected sentences in {text.language!r}, found those in {known}")


_READERS: dict[str, Callable[[FoundText, LineTally], Iterator[str]]] = {
    "plain": FoundText.lines,
    "moses": _moses,
    "sgm": lambda text, tally: iter(read_segments(text, tally).values()),
    "ted": _ted,
    "tmx": _tmx,
    "tsv": _tsv,
}


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _language(side: ElementTree.Element) -> str:
    """A unit's language, without its country: `EN-us` is `en`."""
    key = "{http://www.w3.org/XML/1998/namespace}lang"
    return re.split("[-_]", side.get(key) or side.get("lang") or "")[0].lower()


def _words(segment: ElementTree.Element) -> str:
    inner = "".join(
        ("" if _local(child.tag) in _CODES else _words(child)) + (child.tail or "")
        for child in segment
    )
    return (segment.text or "") + inner


class _Segments(HTMLParser):
    """Collects the segments of an SGML file, by translator."""

    def __init__(self, name: str):
        super().__init__(convert_charrefs=True)
        self._name = name
        self._document: str | None = None
        self._translator = ""
        self._key: Key | None = None
        self._text: list[str] = []
        self._found: dict[str, dict[Key, str]] = {}

    def segments(self, translator: str | None) -> dict[Key, str]:
        """Those of one translator, by `sysid` or number; of all, if none is named."""
        if self._key is not None:
            raise self._fault(f"the file ends within {shown_key(self._key)}; get it again")
        names = list(self._found)
        if translator is None:
            found: dict[Key, str] = {}
            for theirs in self._found.values():
                if twice := next((key for key in theirs if key in found), None):
                    raise self._twice(twice, f"; name one translator of {', '.join(names)}")
                found |= theirs
        elif translator not in names and translator in map(str, range(1, len(names) + 1)):
            found = self._found[names[int(translator) - 1]]
        else:
            found = self._found.get(translator, {})
        if not found:
            wanted = f"those of translator {translator}" if translator else "some"
            raise self._fault(f"expected segments, {wanted}; found {', '.join(names) or 'none'}")
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a document or a segment begins; other tags in a segment are its text."""
        given = dict(attrs)
        if tag == "doc":
            self._document, self._translator = given.get("docid"), given.get("sysid") or ""
        elif tag == "seg":
            if self._key is not None or not self._document or not given.get("id"):
                raise self._fault(
                    "expected closed segments with an id, in documents with a docid, found "
                    f"{self.get_starttag_text()} in line {self.getpos()[0]}"
                )
            self._key, self._text = (self._document, given["id"]), []
        elif self._key is not None:
            self._text.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself is text, once."""
        self.handle_data(self.get_starttag_text() or "")

    def handle_comment(self, data: str) -> None:
        """No comment in a segment: what is published as text is text."""
        self.handle_data(f"<!--{data}-->")

    def handle_pi(self, data: str) -> None:
        """Text, as a comment is."""
        self.handle_data(f"<?{data}>")

    def handle_endtag(self, tag: str) -> None:
        """Keep a segment that ends."""
        if self._key is None:
            return
        if tag != "seg":
            self._text.append(f"</{tag}>")
            return
        theirs = self._found.setdefault(self._translator, {})
        if self._key in theirs:
            raise self._twice(self._key, "")
        theirs[self._key] = "".join(self._text)
        self._key = None

    def handle_data(self, data: str) -> None:
        """Collect a segment's text."""
        if self._key is not None:
            self._text.append(data)

    def _twice(self, key: Key, hint: str) -> UserError:
        return self._fault(f"holds {shown_key(key)} twice{hint}")

    def _fault(self, words: str) -> UserError:
        return UserError(f"{self._name}: {words}")


def shown_key(key: Key) -> str:
    """A segment in words."""
    return f"segment {key[1]} of document {key[0]}"
