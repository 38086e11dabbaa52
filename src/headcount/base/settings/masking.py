"""Settings of the masking experiments."""

from pydantic import Field

from headcount.base.settings.section import LARGEST, MOST_DRAWS, Section


class MaskingSettings(Section):
    """Translating with heads masked: in groups by importance, cumulatively, and at random."""

    groups: int = Field(8, ge=1, le=LARGEST)
    """Near-equal groups into which the ranked heads are cut."""

    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random rankings that are masked in the same way, as a control; 0 leaves it out."""

    test_sets: list[str] = []
    """Names of the test sets to translate, where a pair has them; empty: its first one."""

    sentences: int | None = Field(None, ge=1)
    """Translate only this many sentences of a test set, its first ones; without it all."""
