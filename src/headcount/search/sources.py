"""Sources of a search: batches and longest outputs."""

import sys
from collections.abc import Sequence

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, neighbours


def longest_outputs(
    sources: Sequence[Ids], settings: DecodeSettings, prefix: Sequence[int], positions: int
) -> list[int]:
    """Return the longest output of each source with prefix and EOS, in subwords."""
    factor, extra = settings.max_length_factor, settings.max_length_extra
    least, most = len(prefix) + 1, positions or sys.maxsize
    return [min(max(int(factor * len(ids)) + extra, least), most) for ids in sources]


def search_batches(sources: Sequence[Ids], budget: int) -> list[list[int]]:
    """Return numbers of the non-empty sources, longest first and equal ones side by side."""
    firsts: dict[tuple[int, ...], int] = {}
    places = [firsts.setdefault(tuple(ids), number) for number, ids in enumerate(sources)]
    filled = (number for number, ids in enumerate(sources) if ids)
    order = sorted(filled, key=lambda number: (-len(sources[number]), places[number]))
    lengths = [len(sources[number]) + 1 for number in order]
    return [order[part] for part in neighbours(lengths, budget)]
