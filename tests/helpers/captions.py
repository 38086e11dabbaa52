"""What the words of tables and figures must be like: short captions, and what intervals cover."""

import re
from collections.abc import Mapping

from headcount.findings.described import Described

SENTENCES, WORDS = 2, 50  # of a caption, at most

_END = re.compile(r"[.!?](?= |$)")
_DRAWN_ANEW = re.compile(r"bootstrap|Wilson|interval over test sentences")
_ONE_TRAINING = re.compile(
    r"Intervals and p over ([a-z ]+) are of one trained model: they say what other \1 would give, "
    "not what another training would."
)


def check_caption(name: str, caption: str) -> None:
    """Fails for a caption that is too long, or does not end as a sentence does."""
    ends = _END.findall(caption)
    assert 1 <= len(ends) <= SENTENCES and caption.endswith((".", "?")), f"{name}: {caption}"
    assert len(caption.split()) <= WORDS, f"{name}: {len(caption.split())} words: {caption}"


def tell_what_is_covered(made: Mapping[str, Described]) -> list[str]:
    """Names of the exhibits with an interval; fails for one that does not say what it covers.

    What was drawn anew is told apart from what was trained anew. Fails for a long caption too, and
    for a paragraph of notes that is none.
    """
    for name, each in made.items():
        check_caption(name, each.caption)
        assert all(note[-1] in ".?" and note == note.strip() for note in each.notes), each.notes
        found = (bool(_DRAWN_ANEW.search(each.text)), bool(_ONE_TRAINING.search(each.text)))
        assert found[0] == found[1], f"{name}: {each.text}"
        if "deviation over seeds" in each.text:
            assert "over seeds say how far trainings differ" in each.text, f"{name}: {each.text}"
    return sorted(name for name, each in made.items() if _DRAWN_ANEW.search(each.text))
