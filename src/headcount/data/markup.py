"""Marked-up text: segments of test sets in SGML and XML, and translation memories (TMX)."""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import BinaryIO
from xml.etree import ElementTree

from headcount.base.errors import UserError
from headcount.base.settings.data import two_letters
from headcount.data.manifest import FoundText
from headcount.data.words import UNSPACED

Key = tuple[str, str]  # names of a document and of a segment in it
_Segments = dict[str, dict[Key, str]]  # by translator

# Inline codes of a TMX sentence: pairs around words, and codes with a place of their own.
_PAIRED, _PLACED = frozenset({"bpt", "ept"}), frozenset({"it", "ph", "ut"})
_BREAK = re.compile(r"</?(br|p|div|li|tr|td|th|h[1-6])\b|\\(n|line|par)\b", re.IGNORECASE)
_BREAK_TYPES = frozenset({"lb", "pb", "cb"})  # breaks of lines, pages and columns
_PLACE = "\0"  # stands for a code that has a place: XML cannot contain it
_JOINT = re.compile(rf"(?<=\w)(?<![{UNSPACED}]){_PLACE}+(?=\w)(?![{UNSPACED}])")
_DEEPEST = 100
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_TAG = re.compile(r"<!--|<(doc|/?seg)(?=[\s/>])([^<>]*)>", re.DOTALL | re.IGNORECASE)
_SEGMENT_TAG = re.compile(r"<(/?)seg(?=[\s/>])[^<>]*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"']\S*)""")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_REFERENCE = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]\w*);", re.ASCII)


def elements(stream: BinaryIO, tag: str, name: str) -> Iterator[tuple[ElementTree.Element, ...]]:
    """Yield every element with a tag, and its parent, from an XML stream in bounded memory."""
    parents: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(stream, events=("start", "end")):
            if event == "start":
                parents.append(element)
                if len(parents) > _DEEPEST:
                    raise UserError(f"{name}: expected at most {_DEEPEST} nested elements")
                continue
            parents.pop()
            if _local(element.tag) == tag:
                yield element, parents[-1] if parents else element
                if parents:
                    parents[-1].remove(element)
    except ElementTree.ParseError as fault:
        raise UserError(f"{name}: not well-formed XML ({fault}); get the file again") from None


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def read_memory(text: FoundText) -> Iterator[str]:
    """Yield of each unit of a TMX file its only sentence in the text's language, or nothing."""
    seen: set[str] = set()
    any_sentence = False
    with text.opened() as stream:
        for number, (unit, _) in enumerate(elements(stream, "tu", text.name), start=1):
            sides = [(_tag(side), side.find("{*}seg")) for side in unit.iterfind("{*}tuv")]
            seen.update(tag for tag, _ in sides)
            mine = _variant(dict(sides), text.language, f"{text.name}: unit {number}")
            any_sentence |= mine is not None
            sentences = {_sentence(segment) for tag, segment in sides if tag == mine}
            yield sentences.pop() if len(sentences) == 1 else ""
    if not any_sentence:
        raise _no_language(text, seen)


def _tag(side: ElementTree.Element) -> str:
    """Return the language of a side of a TMX unit in its usual form: `pt-BR` for `PT_br`."""
    language, *others = re.split("[-_]", side.get(_LANGUAGE) or side.get("lang") or "")
    others = [other.upper() if len(other) == 2 else other.capitalize() for other in others]
    return "-".join([language.lower(), *others])


def _variant(tags: Iterable[str], language: str, where: str) -> str | None:
    """Return the tag of a language: the same tag, or else the one with a region or a script."""
    wanted = _subtags(language)
    fitting = [tag for tag in tags if _subtags(tag)[: len(wanted)] == wanted]
    fitting = [tag for tag in fitting if _subtags(tag) == wanted] or fitting
    if len(fitting) > 1:
        raise UserError(
            f"{where}: expected one text in {language!r}, found {' and '.join(fitting)}; call the "
            f"language {' or '.join(fitting).replace('-', '_')} in config/corpora.yaml"
        )
    return fitting[0] if fitting else None


def _subtags(tag: str) -> list[str]:
    language, *others = re.split("[-_]", tag.lower())
    return [two_letters(language), *others]


def _no_language(text: FoundText, seen: Iterable[str]) -> UserError:
    shown = ", ".join(sorted(seen)) or "none"
    return UserError(f"{text.name}: expected sentences in {text.language!r}, found {shown}")


def _sentence(segment: ElementTree.Element | None) -> str:
    """Return the text of a TMX segment. Codes that part two words become a space."""
    text = "" if segment is None else _text(segment)
    return _JOINT.sub(" ", text).replace(_PLACE, "")


def _text(element: ElementTree.Element) -> str:
    kind = _local(element.tag)
    if kind not in _PAIRED | _PLACED:
        inner = (_text(child) + (child.tail or "") for child in element)
        return (element.text or "") + "".join(inner)
    if element.get("type") in _BREAK_TYPES or _BREAK.search("".join(element.itertext())):
        return " "
    return _PLACE if kind in _PLACED else ""


def read_segments(text: FoundText) -> dict[Key, str]:
    """Return the segments of a test set in SGML or XML, by key, of one translator."""
    segments = _wmt(text) if text.format == "wmt" else _sgm(text)
    names = ", ".join(segments)
    parts = list(segments.values())
    if text.translator is not None:
        numbered = {str(number): own for number, own in enumerate(parts, start=1)}
        parts = [segments.get(text.translator, numbered.get(text.translator, {}))]
    chosen = {key: words for own in parts for key, words in own.items()}
    if not chosen:
        wanted = f" of translator {text.translator}" if text.translator else ""
        raise UserError(f"{text.name}: expected segments{wanted}, found {names or 'none'}")
    if len(chosen) < sum(map(len, parts)):
        raise UserError(f"{text.name}: has a segment twice; name one translator of {names}")
    return chosen


def _wmt(text: FoundText) -> _Segments:
    """Return the segments in one language of WMT's XML since 2021, without systems' outputs."""
    segments: dict[str, _Segments] = {}
    with text.opened() as stream:
        for document, _ in elements(stream, "doc", text.name):
            blocks = [] if "testsuite" in document.attrib else document
            for block in (block for block in blocks if _local(block.tag) != "hyp"):
                author = block.get("translator", "")
                own = segments.setdefault(block.get("lang", ""), {}).setdefault(author, {})
                for segment in block.iterfind(".//{*}seg"):
                    key = (document.get("id", ""), segment.get("id", ""))
                    _add(own, key, "".join(segment.itertext()), text.name)
    mine = _variant(segments, text.language, text.name)
    if mine is None:
        raise _no_language(text, segments)
    return segments[mine]


def _sgm(text: FoundText) -> _Segments:
    """Return the segments of an SGML file, which need not be well-formed."""
    content = "".join(f"{line}\n" for line in text.lines())
    segments: _Segments = {}
    document, translator, place, last_comment = "", "", 0, content.rfind("-->")
    while tag := _TAG.search(content, place):
        place, kind = tag.end(), (tag[1] or "").lower()
        pairs = _ATTRIBUTE.findall(tag[2] or "")
        attributes = {key.lower(): unescape(value.strip("\"'")) for key, value in pairs}
        if kind == "doc":
            document, translator = attributes.get("docid", ""), attributes.get("sysid", "")
        if tag[0] == "<!--" and place <= last_comment:
            place = content.index("-->", place) + 3
        if kind in ("", "doc"):  # the first is a comment
            continue
        key = (document, attributes.get("id", ""))
        end = _SEGMENT_TAG.search(content, place)
        wrong = tag if kind == "/seg" or not all(key) else end if end and not end[1] else None
        if wrong:
            raise UserError(
                f"{text.name}:{content.count(chr(10), 0, wrong.start()) + 1}: expected closed "
                f"segments with an id, in documents with a docid, found {wrong[0]}; WMT's XML "
                "since 2021 has the format wmt"
            )
        if end is None:
            raise UserError(f"{text.name}: the file ends within {shown_key(key)}; get it again")
        words = _decoded(content[place : end.start()])
        _add(segments.setdefault(translator, {}), key, words, text.name)
        place = end.end()
    return segments


def _decoded(words: str) -> str:
    """Decode references such as `&amp;` once. Marked sections are literal."""
    closed = words.rfind("]]>") + 3 if "]]>" in words else 0  # else the time would be quadratic
    parts = enumerate([*_CDATA.split(words[:closed]), "", words[closed:]])
    return "".join(part if n % 2 else _REFERENCE.sub(_character, part) for n, part in parts)


def _character(reference: re.Match[str]) -> str:
    """Return the character of a reference, or the reference itself if it has none."""
    character = unescape(reference[0])
    return reference[0] if character in ("", "\ufffd") else character


def _add(segments: dict[Key, str], key: Key, words: str, name: str) -> None:
    if not all(key):
        raise UserError(f"{name}: expected segments and documents with an id, found {key}")
    if key in segments:
        raise UserError(f"{name}: has {shown_key(key)} twice")
    segments[key] = words


def shown_key(key: Key) -> str:
    """Return a segment's name for messages."""
    return f"segment {key[1]} of document {key[0]}"
