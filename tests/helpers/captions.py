"""What a caption must say of the intervals and p-values that it names."""

import re
from collections.abc import Mapping

_DRAWN_ANEW = re.compile(r"bootstrap|Wilson|interval over test sentences")
_ONE_TRAINING = re.compile(
    r"Intervals and p over ([a-z ]+) are of one trained model: they say what other \1 would give, "
    "not what another training would."
)


def tell_what_is_covered(captions: Mapping[str, str]) -> list[str]:
    """Names of the captions with an interval; fails for one that does not say what it covers.

    What was drawn anew is told apart from what was trained anew.
    """
    for name, caption in captions.items():
        found = (bool(_DRAWN_ANEW.search(caption)), bool(_ONE_TRAINING.search(caption)))
        assert found[0] == found[1], f"{name}: {caption}"
        if "deviation over seeds" in caption:
            assert "over seeds say how far trainings differ" in caption, f"{name}: {caption}"
    return sorted(name for name, caption in captions.items() if _DRAWN_ANEW.search(caption))
