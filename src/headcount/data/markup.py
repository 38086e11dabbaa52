"""Marked-up text: segments of test sets in SGML and XML, and translation memories (TMX)."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from html import unescape
from typing import BinaryIO
from xml.etree import ElementTree

from headcount.base.errors import UserError
from headcount.base.settings.text.languages import two_letters
from headcount.data.archives import named, unpacked
from headcount.data.lines import LineTally
from headcount.data.manifest import FoundText
from headcount.data.words import UNSPACED

Key = tuple[str, str]
"""A document's name, and a segment's in it."""

_Segments = dict[str, dict[Key, str]]  # by translator or system

# Layout of some program's in a TMX sentence: pairs around words, and others that have a place.
_PAIRED, _PLACED = frozenset({"bpt", "ept"}), frozenset({"it", "ph", "ut"})
_BREAK = re.compile(r"</?(br|p|div|li|tr|td|th|h[1-6])\b|\\(n|line|par)\b", re.IGNORECASE)
_BREAK_TYPES = frozenset({"lb", "pb", "cb"})  # breaks of lines, pages and columns
_PLACE = "\0"  # stands for a code that has a place: XML cannot hold it
_JOINT = re.compile(rf"(?<=\w)(?<![{UNSPACED}]){_PLACE}+(?=\w)(?![{UNSPACED}])")

_TAG = re.compile(r"<!--.*?-->|<(doc|/?seg)(?=[\s/>])([^<>]*)>", re.DOTALL | re.IGNORECASE)
_SEGMENT_TAG = re.compile(r"<(/?)seg(?=[\s/>])[^<>]*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"']\S*)""")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_REFERENCE = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]\w*);", re.ASCII)
_WHO = {"src": "", "ref": "translator", "hyp": "system"}  # in WMT's XML, who wrote a block


def read_segments(text: FoundText, tally: LineTally) -> dict[Key, str]:
    """Return the segments of a test set in SGML or XML (WMT, NIST, IWSLT), by key.

    Raises UserError for a segment that is cut, nameless or there twice.
    """
    name = named(text.path, text.member, text.shown)
    found = _wmt(text, tally, name) if text.format == "wmt" else _sgm(text, tally, name)
    return _of_translator(found, text.translator, name)


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


def read_memory(text: FoundText, tally: LineTally) -> Iterator[str]:
    """Yield of each unit of a TMX file the sentence in the text's language.

    It is empty if the unit has none, or several that differ; the latter are counted.
    """
    name = named(text.path, text.member, text.shown)
    seen: set[str] = set()
    progress = "{0.lines} good units".format
    with unpacked(text.path, text.member, text.shown, partial(progress, tally)) as stream:
        for unit, _ in elements(stream, "tu", name):
            tally.lines += 1
            sides = [(_tag(side), side.find("{*}seg")) for side in unit.iterfind("{*}tuv")]
            seen.update(tag for tag, _ in sides)
            mine = _variant(dict(sides), text.language, f"{name}: unit {tally.lines}")
            found = {_words(segment) for tag, segment in sides if tag == mine}
            if mine:
                tally.tags[mine] = tally.tags.get(mine, 0) + 1
                tally.ambiguous += len(found) > 1
            yield found.pop() if len(found) == 1 else ""
    if not tally.tags:
        raise _no_language(name, text.language, seen)


def _tag(side: ElementTree.Element) -> str:
    """Return the language of a side of a TMX unit in its usual form: `pt-BR` for `PT_br`."""
    key = "{http://www.w3.org/XML/1998/namespace}lang"
    language, *others = re.split("[-_]", side.get(key) or side.get("lang") or "")
    others = [each.upper() if len(each) == 2 else each.capitalize() for each in others]
    return "-".join([language.lower(), *others])


def _variant(tags: Iterable[str], language: str, where: str) -> str | None:
    """Return the tag of a language: the same tag, or else one that adds a region or a script.

    Raises UserError if several do.
    """
    wanted = _subtags(language)
    found = [tag for tag in tags if _subtags(tag)[: len(wanted)] == wanted]
    found = [tag for tag in found if _subtags(tag) == wanted] or found
    if len(found) > 1:
        names = " or ".join(tag.replace("-", "_") for tag in found)
        raise UserError(
            f"{where}: expected one text in {language!r}, found {' and '.join(found)}; call the "
            f"language {names} in config/corpora.yaml"
        )
    return found[0] if found else None


def _subtags(tag: str) -> list[str]:
    language, *others = re.split("[-_]", tag.lower())
    return [two_letters(language), *others]


def _no_language(name: str, language: str, seen: Iterable[str]) -> UserError:
    known = ", ".join(sorted(seen)) or "none"
    return UserError(f"{name}: expected sentences in {language!r}, found those in {known}")


def _words(segment: ElementTree.Element | None) -> str:
    """Return the text of a TMX segment. Codes that part two words become a space."""
    text = "" if segment is None else _with_codes(segment)
    return _JOINT.sub(" ", text).replace(_PLACE, "")


def _with_codes(element: ElementTree.Element) -> str:
    return (element.text or "") + "".join(
        _code(child, _local(child.tag)) + (child.tail or "") for child in element
    )


def _code(element: ElementTree.Element, kind: str) -> str:
    if kind not in _PAIRED | _PLACED:
        return _with_codes(element)
    if element.get("type") in _BREAK_TYPES or _BREAK.search("".join(element.itertext())):
        return " "
    return _PLACE if kind in _PLACED else ""


def _wmt(text: FoundText, tally: LineTally, name: str) -> _Segments:
    """Return the segments in one language of WMT's XML since 2021.

    Systems are left out unless a translator or system is named; numbers count translators alone.
    Documents of test suites, which have no reference, are left out and counted.
    """
    found: dict[str, _Segments] = {}
    systems = set()
    with unpacked(text.path, text.member, text.shown) as stream:
        for document, _ in elements(stream, "doc", name):
            if "testsuite" in document.attrib:
                tally.testsuites += 1
                continue
            for block in document:
                who = block.get(_WHO.get(_local(block.tag), ""), "")
                systems.update([who] if _local(block.tag) == "hyp" else [])
                theirs = found.setdefault(block.get("lang", ""), {}).setdefault(who, {})
                for segment in block.iterfind(".//{*}seg"):
                    key = (document.get("id", ""), segment.get("id", ""))
                    _add(theirs, key, "".join(segment.itertext()), name)
    mine = _variant(found, text.language, name)
    if mine is None:
        raise _no_language(name, text.language, found)
    asked = text.translator
    named_none = asked is None or asked.isdecimal() and asked not in found[mine]
    unasked = systems if named_none else set()
    chosen = {who: theirs for who, theirs in found[mine].items() if who not in unasked}
    tally.lines += sum(map(len, chosen.values()))
    return chosen


def _sgm(text: FoundText, tally: LineTally, name: str) -> _Segments:
    """Return the segments of an SGML file, which need not be well-formed."""
    content = "".join(f"{line}\n" for line in text.lines(tally))
    found: _Segments = {}
    document, translator, place = "", "", 0
    while tag := _TAG.search(content, place):
        place, kind, given = tag.end(), (tag[1] or "").lower(), _attributes(tag[2] or "")
        if kind == "doc":
            document, translator = given.get("docid", ""), given.get("sysid", "")
        if kind in ("", "doc"):  # the first is a comment
            continue
        key = (document, given.get("id", ""))
        end = _SEGMENT_TAG.search(content, place)
        wrong = tag if kind == "/seg" or not all(key) else end if end and not end[1] else None
        if wrong:
            raise UserError(
                f"{name}: expected closed segments with an id, in documents with a docid, found "
                f"{wrong[0]} in line {content.count(chr(10), 0, wrong.start()) + 1}; WMT's XML "
                "since 2021 has the format wmt"
            )
        if end is None:
            raise UserError(f"{name}: the file ends within {shown_key(key)}; get it again")
        words = content[place : end.start()]
        _add(found.setdefault(translator, {}), key, _decoded(words), name)
        place = end.end()
    return found


def _attributes(text: str) -> dict[str, str]:
    pairs = _ATTRIBUTE.findall(text)
    return {key.lower(): unescape(value.strip("\"'")) for key, value in pairs}


def _decoded(words: str) -> str:
    """Decode references such as `&amp;` once, but for marked sections, which are as they are."""
    parts = enumerate(_CDATA.split(words))
    return "".join(part if n % 2 else _REFERENCE.sub(_character, part) for n, part in parts)


def _character(reference: re.Match[str]) -> str:
    """Return what a reference stands for; the reference itself if that is no character."""
    found = unescape(reference[0])
    return reference[0] if found in ("", "\ufffd") else found


def _add(segments: dict[Key, str], key: Key, words: str, name: str) -> None:
    if not all(key):
        raise UserError(f"{name}: expected segments and documents with an id, found {key}")
    if key in segments:
        raise UserError(f"{name}: holds {shown_key(key)} twice")
    segments[key] = words


def _of_translator(found: _Segments, translator: str | None, name: str) -> dict[Key, str]:
    """Return the segments of a translator, by name or number; of all, if none is named."""
    names = list(found)
    if translator is None:
        chosen: dict[Key, str] = {}
        for theirs in found.values():
            if twice := next((key for key in theirs if key in chosen), None):
                hint = f"name one translator of {', '.join(names)}"
                raise UserError(f"{name}: holds {shown_key(twice)} twice; {hint}")
            chosen |= theirs
    elif translator not in names and translator in map(str, range(1, len(names) + 1)):
        chosen = found[names[int(translator) - 1]]
    else:
        chosen = found.get(translator, {})
    if not chosen:
        wanted = f"those of translator {translator}" if translator else "some"
        listed = ", ".join(names) or "none"
        raise UserError(f"{name}: expected segments, {wanted}; found {listed}")
    return chosen


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def shown_key(key: Key) -> str:
    """A segment in words."""
    return f"segment {key[1]} of document {key[0]}"
