"""What a table or figure says in words: a caption, notes behind it, warnings before it."""

from typing import Any


class Described:
    """The words of a table or figure; whoever is a dataclass of this kind has these fields."""

    caption: str
    """At most two sentences: what is shown, and what to look at."""

    notes: tuple[str, ...]
    """A paragraph each: definitions, how it was measured, settings; empty ones are left out.

    A page states once what several exhibits say in the same words, so what can be shared is a
    paragraph of its own.
    """

    warnings: tuple[str, ...]
    """A sentence each: what makes numbers of this exhibit mean less than they seem to."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(filter(None, self.notes)))

    @property
    def text(self) -> str:
        """All that is said: caption, warnings and notes."""
        return " ".join([self.caption, *self.warnings, *self.notes])

    def words(self) -> dict[str, Any]:
        """For JSON: caption, warnings and notes."""
        lists = {"warnings": list(self.warnings), "notes": list(self.notes)}
        return {"caption": self.caption, **lists}
