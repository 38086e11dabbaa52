"""Notes that several exhibits of a page have in the same words: stated once, and linked."""

from collections import Counter
from typing import Any, NamedTuple

_WORDS = 5  # of a note, by which links name it


class SharedNote(NamedTuple):
    """A note of several exhibits."""

    number: int
    """From 1, in the order of the page."""

    text: str

    @property
    def label(self) -> str:
        """Its first words."""
        words = self.text.split()
        return " ".join(words[:_WORDS]).rstrip(",;:.") + ("…" if len(words) > _WORDS else "")


def share_notes(blocks: list[dict[str, Any]]) -> list[SharedNote]:
    """The notes that two blocks or more have; each block is left its own, and gets `shared`."""
    counts = Counter(note for block in blocks for note in dict.fromkeys(block["notes"]))
    several = [note for note, count in counts.items() if count > 1]
    found = {text: SharedNote(number, text) for number, text in enumerate(several, start=1)}
    for block in blocks:
        block["shared"] = [found[note] for note in block["notes"] if note in found]
        block["notes"] = [note for note in block["notes"] if note not in found]
    return list(found.values())
