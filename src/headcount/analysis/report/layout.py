"""Drawings, and texts that several tables and figures share, on the page of the report."""

import re
from collections import Counter
from html import escape
from typing import Any

from markupsafe import Markup

_ID = re.compile(r'\b(id="|href="#|url\(#)')
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.S)
_SIZE = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)pt" [^>]*?\bviewBox="([^"]*)"', re.S)
_SMALLEST = 0.68 * 4 / 3  # pixels for a point of a drawing; below it, the drawing scrolls
_LABEL = re.compile(r"\S+( \S*\w){,4}")  # the first five words name a text in a link


def share(blocks: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return the texts that two blocks or more have under a key, each with a number and a label.

    A block keeps its other texts under the key, and gets those that it shares under `shared_…`.
    """
    counts = Counter(text for block in blocks for text in dict.fromkeys(block[key]))
    texts = [text for text, count in counts.items() if count > 1]
    shared = {
        text: {"number": number, "text": text, "label": _LABEL.match(text)[0], "of": {}}
        for number, text in enumerate(texts, start=1)
    }
    for block in blocks:
        block[f"shared_{key}"] = [shared[text] for text in block[key] if text in shared]
        block[key] = [text for text in block[key] if text not in shared]
        for item in block[f"shared_{key}"]:
            item["of"] |= {block["of"]: None}
    return list(shared.values())


def inline_drawing(svg: str, name: str, description: str) -> dict[str, Any]:
    """Return the `<svg>` element of a file that matplotlib wrote, and its view box.

    `name` becomes a prefix of all ids. Screen readers read the description.
    """
    element = _ID.sub(rf"\g<1>{name}-", _METADATA.sub("", svg[svg.index("<svg") :]))
    width, box = _SIZE.search(element).groups()
    least = f"min-width: {float(width) * _SMALLEST:.0f}px"
    start = f'<svg role="img" aria-label="{escape(description)}" style="{least}" '
    return {"drawing": Markup(element.replace("<svg ", start, 1)), "box": box}
