"""Drawings within a page: an SVG file of a figure as an element that others cannot disturb."""

import re
from html import escape

_ID = re.compile(r'\b(id="|href="#|url\(#)')
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.S)
_WIDTH = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)pt"', re.S)
_SMALLEST = 0.68  # of its own size; below, words cannot be read and the drawing scrolls
_POINT = 4 / 3  # pixels


def inline_drawing(svg: str, name: str, words: str) -> str:
    """The `<svg>` element of a file that matplotlib wrote.

    `name` is put before its ids, since a page has many drawings; `words` are told in its place to
    who cannot see it.
    """
    element = _METADATA.sub("", svg[svg.index("<svg") :])
    element = _ID.sub(lambda found: f"{found[1]}{name}-", element)
    size = _WIDTH.search(element)
    least = f' style="min-width: {float(size[1]) * _POINT * _SMALLEST:.0f}px"' if size else ""
    label = escape(words, quote=True)
    return element.replace("<svg ", f'<svg role="img" aria-label="{label}"{least} ', 1)
