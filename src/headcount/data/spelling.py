"""How lines are written, beyond the words that they have: for a model another spelling is unknown.

The training text gets it before anything is learnt from it; what a trained model reads later, such
as a treebank or a reader's own text, gets it where it is cut into pieces.
"""

import unicodedata
from collections.abc import Callable
from typing import Any

from headcount.base.settings.data import LetterSettings, SpellingSettings

SPELLING = "spelling"
"""Where segmentation.json tells those of `SpellingSettings` that are not the defaults.

Text for a pretrained model keeps its normal form, for such models have one of their own."""

Spell = Callable[[str], str]


def spelling(settings: SpellingSettings) -> Spell:
    """Return what spells a line: normal form, then lower case. Twice changes nothing more."""
    form = settings.normal_form

    def normal(line: str) -> str:
        return line if form == "none" else unicodedata.normalize(form, line)

    def spell(line: str) -> str:
        line = normal(line)
        return normal(line.lower()) if settings.lowercase else line  # small letters may compose

    return spell


def spelling_facts(settings: LetterSettings) -> dict[str, Any]:
    """What segmentation.json tells of it: nothing of the defaults."""
    told = settings.model_dump(exclude_defaults=True)
    return {SPELLING: told} if told else {}


def read_spelling(about: dict[str, Any], default: SpellingSettings) -> Spell:
    """`spelling` as segmentation.json tells it, the default where it tells nothing.

    Raises ValueError for what is no such setting.
    """
    told = about.get(SPELLING, {})
    if not isinstance(told, dict):
        raise ValueError(f"{SPELLING}: expected settings by name, found {told!r}")
    return spelling(SpellingSettings(**default.model_dump() | told))
