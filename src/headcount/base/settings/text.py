"""Settings of the text step: which training pairs are kept."""

from typing import Literal

from pydantic import Field

from headcount.base.settings.section import LARGEST, Section


class TextSettings(Section):
    """Filters for training pairs. Dev and test sets keep every line, so that ids stay aligned."""

    max_words: int = Field(200, ge=1, le=LARGEST)
    """Training pairs with more words than this on either side are left out (words). Where a script
    is written without spaces, two of its characters count as one word."""

    max_ratio: float = Field(5.0, ge=1)
    """Training pairs whose longer side has more than this many times the words of the shorter,
    counted above five words, are left out."""

    max_dropped: float = Field(0.1, ge=0, le=1)
    """Largest share of the training pairs that one filter may leave out: pairs with an empty side,
    by `max_words`, by `max_ratio`, or with a word of more than 1000 characters. More is an error.
    `drop_duplicates` and `drop_overlap` may leave out any share."""

    normal_form: Literal["NFC", "none"] = "NFC"
    """Unicode normal form of every line, references included; NFC changes no visible character."""

    drop_duplicates: bool = False
    """Leave out a training pair that occurred before. Duplicates are counted in any case."""

    drop_overlap: bool = False
    """Leave out training pairs whose source line is in dev or a test set. Counted in any case."""
