"""Where two sides of unequal length seem to part: a hint for whoever mends the files."""

import math
import re
from collections import deque
from collections.abc import Iterable
from itertools import islice

_NUMBER = re.compile(r"\d+")

_Traits = tuple[int, tuple[str, ...]]  # what shows in a line that it translates another


def parting_line(shorter: Iterable[str], longer: Iterable[str], surplus: int) -> int:
    """Most suspicious line, counted from 1, when `longer` has `surplus` lines too many.

    Up to the parting, line i translates line i; after it, line i + surplus. How badly two lines
    match is the difference of their lengths (absolute logarithm of the ratio) plus 1 if their
    numbers differ. The parting is where the sum of all mismatches is smallest; it is a guess.
    """
    later = map(_traits, longer)
    window = deque(islice(later, surplus))
    best, best_cost, cost = 1, 0.0, 0.0
    # The surplus makes the second iterable as long as the first.
    for line, (side, ahead) in enumerate(zip(map(_traits, shorter), later, strict=True), start=2):
        window.append(ahead)
        # What it costs to part after this line rather than before it.
        cost += _mismatch(side, window.popleft()) - _mismatch(side, ahead)
        if cost < best_cost:
            best, best_cost = line, cost
    return best


def _traits(line: str) -> _Traits:
    return len(line.strip()), tuple(sorted(_NUMBER.findall(line)))


def _mismatch(one: _Traits, other: _Traits) -> float:
    return abs(math.log((one[0] + 1) / (other[0] + 1))) + (one[1] != other[1])
