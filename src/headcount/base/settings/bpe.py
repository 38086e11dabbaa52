"""Settings of byte-pair encoding."""

from pydantic import Field

from headcount.base.settings.section import LARGEST, Section


class BpeSettings(Section):
    """How words are cut into subwords."""

    merges: int = Field(8000, ge=0, le=LARGEST)
    """Number of merge operations learnt, per code file."""

    joint: bool = True
    """One code file and vocabulary for both languages. The model then ties all embeddings."""
