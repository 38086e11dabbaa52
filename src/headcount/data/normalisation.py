"""Normalisation of lines: Unicode form and lower case.

The training text is normalised before anything is learnt from it. Text that a trained model reads
later, such as a treebank, is normalised where it is cut into pieces.
"""

import unicodedata
from collections.abc import Callable
from typing import Any

from headcount.base.settings.data import LetterSettings, SpellingSettings

SPELLING = "spelling"
"""Key of segmentation.json: the `SpellingSettings` that are not the defaults."""

Normalise = Callable[[str], str]


def normaliser(settings: SpellingSettings) -> Normalise:
    """Return a function that normalises a line: Unicode form, then lower case. It is idempotent."""
    form = settings.normal_form

    def normal(line: str) -> str:
        return line if form == "none" else unicodedata.normalize(form, line)

    def normalise(line: str) -> str:
        line = normal(line)
        return normal(line.lower()) if settings.lowercase else line  # small letters may compose

    return normalise


def spelling_facts(settings: LetterSettings) -> dict[str, Any]:
    """Return the entry of segmentation.json for settings: empty for the defaults."""
    changed = settings.model_dump(exclude_defaults=True)
    return {SPELLING: changed} if changed else {}


def read_normaliser(about: dict[str, Any], default: SpellingSettings) -> Normalise:
    """Return the normaliser that segmentation.json records, by default that of `default`.

    Raises ValueError for an entry that is no such setting.
    """
    changed = about.get(SPELLING, {})
    if not isinstance(changed, dict):
        raise ValueError(f"{SPELLING}: expected settings by name, found {changed!r}")
    return normaliser(SpellingSettings(**default.model_dump() | changed))
