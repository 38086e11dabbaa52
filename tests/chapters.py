"""Chapters of tables and figures made from files by hand, without a command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.base.settings.section import Section
from headcount.findings.exhibits import load_chapter
from headcount.findings.figures import use_style
from headcount.findings.make import make_exhibits
from headcount.findings.results import Results

Lists = Mapping[str, list[Path]]


def make_chapter(
    name: str, lists: Lists, settings: Mapping[str, Section]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tables and figures by name: of the exhibits that these files are enough for."""
    use_style()
    chapter = load_chapter(name)
    files = {kind: lists.get(kind, []) for kind in chapter.kinds}
    given = chapter.made_from([kind for kind, found in files.items() if found])
    return make_exhibits(given, Results(files, settings))


def make_alone(name: str, lists: Lists, settings: Mapping[str, Section]) -> set[str]:
    """Names of the exhibits made, each from files of no other kinds than those it declares."""
    use_style()
    chapter, made = load_chapter(name), set()
    for each in chapter.exhibits:
        kinds = ("runs", *each.needs, *each.uses)
        results = Results({kind: lists.get(kind, []) for kind in kinds}, settings)
        chapter.function(each.maker)(results)
        made.add(each.name)
    return made
